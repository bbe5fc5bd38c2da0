package export

import (
	"time"

	"codea1/events"
	"codea1/replay/eventlog"
	"codea1/replay/query"
)

// EventRow is an event as one row: the envelope, and the payload as JSON.
type EventRow struct {
	Seq           uint64    `json:"seq" parquet:"seq"`
	ID            string    `json:"id" parquet:"id"`
	Type          string    `json:"type" parquet:"type,dict"`
	SchemaVersion int       `json:"schema_version" parquet:"schema_version"`
	Run           string    `json:"run" parquet:"run,dict"`
	Group         string    `json:"group" parquet:"group"`
	Source        string    `json:"source" parquet:"source,dict"`
	Time          time.Time `json:"time" parquet:"time,timestamp(microsecond)"`
	CausationID   string    `json:"causation_id" parquet:"causation_id"`
	PayloadHash   string    `json:"payload_hash" parquet:"payload_hash"`
	Compacted     bool      `json:"compacted,omitempty" parquet:"compacted"` // compaction has removed token IDs and log-probs
	Payload       rawJSON   `json:"payload" parquet:"payload"`               // null if it cannot be decoded
}

func (r *EventRow) texts() map[string]int { return map[string]int{"payload": len(r.Payload)} }

// rawJSON is JSON: a text in a parquet table, and a JSON value in JSONL.
type rawJSON string

// MarshalJSON implements json.Marshaler.
func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// NewEventRow returns the row of an event.
func NewEventRow(r *eventlog.Record) (EventRow, error) {
	m := &r.Message
	row := EventRow{
		Seq: r.Seq, ID: m.ID, Type: string(m.Type), SchemaVersion: m.SchemaVersion, Run: m.Run, Group: m.Group, Source: m.Source,
		Time: m.Time, CausationID: m.CausationID, PayloadHash: r.PayloadHash.String(), Compacted: r.Compacted, Payload: "null",
	}
	e, err := r.Decode()
	if eventlog.IsUnreadable(err) {
		return row, nil
	}
	if err != nil {
		return EventRow{}, err
	}
	// Decode has converted an older payload to the current schema version.
	row.SchemaVersion, row.Payload = e.SchemaVersion, rawJSON(AppendPayload(nil, e.Payload))
	return row, nil
}

// GroupColumns are the columns that a row has from its group.
type GroupColumns struct {
	Group       string `json:"group" parquet:"group"`
	Purpose     string `json:"purpose" parquet:"purpose,dict"`
	Step        int    `json:"step" parquet:"step"`
	Slot        int    `json:"slot" parquet:"slot"`
	Problem     string `json:"problem" parquet:"problem"`
	CodeVersion int    `json:"code_version" parquet:"code_version"`
}

func groupColumns(g *query.Lineage) GroupColumns {
	x := g.Executed
	return GroupColumns{g.Group, string(x.Plan.Purpose), x.Plan.Step, x.Plan.Slot, x.ProblemID, x.CodeVersion}
}

// AnswerRow is one answer of the Code LLM with its results.
type AnswerRow struct {
	GroupColumns
	Answer       int     `json:"answer" parquet:"answer"`
	Text         string  `json:"text" parquet:"text"` // the completion as sampled
	Code         string  `json:"code" parquet:"code"` // the code in the completion
	Tokens       int     `json:"tokens" parquet:"tokens"`
	Finish       string  `json:"finish" parquet:"finish,dict"`
	Loads        bool    `json:"loads" parquet:"loads"`
	LoadError    string  `json:"load_error" parquet:"load_error"`
	Failure      string  `json:"failure" parquet:"failure"` // infrastructure failure
	Kept         int     `json:"kept" parquet:"kept"`       // kept tests of its suites
	Passed       int     `json:"passed" parquet:"passed"`
	Historical   int     `json:"historical" parquet:"historical"` // historical tests
	PassedBefore int     `json:"historical_passed" parquet:"historical_passed"`
	Golden       int     `json:"golden" parquet:"golden"`
	PassedGolden int     `json:"golden_passed" parquet:"golden_passed"`
	Rewarded     bool    `json:"rewarded" parquet:"rewarded"` // if false, the next columns have no value
	Masked       bool    `json:"masked" parquet:"masked"`
	Reward       float64 `json:"reward" parquet:"reward"`
	Advantage    float64 `json:"advantage" parquet:"advantage"`
	TopVar       bool    `json:"top_var" parquet:"top_var"` // the Test LLM is trained on its suites
}

func (r *AnswerRow) texts() map[string]int {
	return map[string]int{"text": len(r.Text), "code": len(r.Code), "load_error": len(r.LoadError), "failure": len(r.Failure)}
}

// TestRow is one test of a suite of the Test LLM with its results.
type TestRow struct {
	GroupColumns
	TestVersion    int     `json:"test_version" parquet:"test_version"`
	Answer         int     `json:"answer" parquet:"answer"`
	Suite          int     `json:"suite" parquet:"suite"`
	Test           int     `json:"test" parquet:"test"`
	Source         string  `json:"source" parquet:"source"`
	Status         string  `json:"status" parquet:"status,dict"`
	Call           string  `json:"call" parquet:"call"`
	Stated         string  `json:"stated" parquet:"stated"`
	Expected       string  `json:"expected" parquet:"expected"`
	Wrong          bool    `json:"wrong" parquet:"wrong"` // wrong as stated: expected is the true value
	Verdict        string  `json:"verdict" parquet:"verdict,dict"`
	Detail         string  `json:"detail" parquet:"detail"`
	Rewarded       bool    `json:"rewarded" parquet:"rewarded"` // if false, the next columns have no value
	Masked         bool    `json:"masked" parquet:"masked"`
	SuiteReward    float64 `json:"suite_reward" parquet:"suite_reward"`
	SuiteAdvantage float64 `json:"suite_advantage" parquet:"suite_advantage"`
	RVal           float64 `json:"r_val" parquet:"r_val"`
	RAdv           float64 `json:"r_adv" parquet:"r_adv"`
}

func (r *TestRow) texts() map[string]int {
	return map[string]int{
		"source": len(r.Source), "call": len(r.Call), "stated": len(r.Stated), "expected": len(r.Expected), "detail": len(r.Detail),
	}
}

// answerRows returns one row per answer of an executed group.
func answerRows(g *query.Lineage) []AnswerRow {
	x := g.Executed
	rows := make([]AnswerRow, len(x.Answers))
	for m := range rows {
		a := &x.Answers[m]
		row := AnswerRow{
			GroupColumns: groupColumns(g), Answer: m, Loads: a.Loads, LoadError: a.LoadError, Failure: a.Failure,
			Historical: len(a.Historical), Golden: len(a.Golden),
		}
		if g.Code != nil {
			c := &g.Code.Answers[m]
			row.Text, row.Tokens, row.Finish = c.Text, g.AnswerTokens(m), c.Finish
		}
		row.Code = g.AnswerCode(m)
		for n := range a.Suites {
			for i := range a.Suites[n].Tests {
				t := &a.Suites[n].Tests[i]
				row.Kept += count(t.Status == events.StatusKept)
				row.Passed += count(t.Verdict == events.VerdictPass)
			}
		}
		for _, v := range a.Historical {
			row.PassedBefore += count(v == events.VerdictPass)
		}
		for i := range a.Golden {
			row.PassedGolden += count(a.Golden[i].Verdict == events.VerdictPass)
		}
		if r := g.Rewarded; r != nil {
			row.Rewarded, row.TopVar = true, r.TopVar == m
			row.Masked, row.Reward, row.Advantage = r.Code[m].Masked, r.Code[m].Reward, r.Code[m].Advantage
		}
		rows[m] = row
	}
	return rows
}

// testRows returns one row per test of an executed group.
func testRows(g *query.Lineage) []TestRow {
	var rows []TestRow
	x := g.Executed
	for m := range x.Answers {
		for n := range x.Answers[m].Suites {
			for i := range x.Answers[m].Suites[n].Tests {
				t := &x.Answers[m].Suites[n].Tests[i]
				row := TestRow{
					GroupColumns: groupColumns(g), TestVersion: x.TestVersion, Answer: m, Suite: n, Test: i,
					Source: t.Source, Status: string(t.Status), Call: t.Call, Stated: t.Stated, Expected: t.Expected,
					Wrong: t.Wrong, Verdict: string(t.Verdict), Detail: t.Detail,
				}
				// An answer with an infrastructure failure may have more suites than rewards.
				if r := g.Rewarded; r != nil && n < len(r.Test[m]) {
					s := &r.Test[m][n]
					row.Rewarded, row.Masked = true, s.Masked
					row.SuiteReward, row.SuiteAdvantage, row.RVal, row.RAdv = s.Reward, s.Advantage, s.RVal, s.RAdv
				}
				rows = append(rows, row)
			}
		}
	}
	return rows
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}
