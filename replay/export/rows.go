package export

import (
	"strings"
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
	Compacted     bool      `json:"compacted,omitempty" parquet:"compacted"` // the payload has lost its token ids and log-probs
	Payload       rawJSON   `json:"payload" parquet:"payload"`               // null if nobody can read it
}

func (r *EventRow) size() int     { return len(r.Payload) }
func (*EventRow) texts() []string { return []string{"payload"} }

// rawJSON is text in a table and itself in JSON.
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
	var payload strings.Builder
	if err := NewLines(&payload).Encode(Payload(e.Payload)); err != nil {
		return EventRow{}, err
	}
	// A payload of an older schema was brought to the current one.
	row.SchemaVersion, row.Payload = e.SchemaVersion, rawJSON(strings.TrimSpace(payload.String()))
	return row, nil
}

// AnswerRow is one answer of the Code LLM with what came of it.
type AnswerRow struct {
	Group        string  `json:"group" parquet:"group"`
	Purpose      string  `json:"purpose" parquet:"purpose,dict"`
	Step         int     `json:"step" parquet:"step"`
	Slot         int     `json:"slot" parquet:"slot"`
	Problem      string  `json:"problem" parquet:"problem"`
	CodeVersion  int     `json:"code_version" parquet:"code_version"`
	Answer       int     `json:"answer" parquet:"answer"`
	Text         string  `json:"text" parquet:"text"` // the response as sampled
	Code         string  `json:"code" parquet:"code"` // the program in it
	Tokens       int     `json:"tokens" parquet:"tokens"`
	Finish       string  `json:"finish" parquet:"finish,dict"`
	Loads        bool    `json:"loads" parquet:"loads"`
	LoadError    string  `json:"load_error" parquet:"load_error"`
	Failure      string  `json:"failure" parquet:"failure"` // of the infrastructure
	Kept         int     `json:"kept" parquet:"kept"`       // new tests it ran on, of all its suites
	Passed       int     `json:"passed" parquet:"passed"`
	Historical   int     `json:"historical" parquet:"historical"` // tests of the Mistake Book it ran on
	PassedBefore int     `json:"historical_passed" parquet:"historical_passed"`
	Golden       int     `json:"golden" parquet:"golden"`
	PassedGolden int     `json:"golden_passed" parquet:"golden_passed"`
	Rewarded     bool    `json:"rewarded" parquet:"rewarded"` // what follows counts only then
	Masked       bool    `json:"masked" parquet:"masked"`
	Reward       float64 `json:"reward" parquet:"reward"`
	Advantage    float64 `json:"advantage" parquet:"advantage"`
	TopVar       bool    `json:"top_var" parquet:"top_var"` // the Test LLM learns from its suites
}

func (r *AnswerRow) size() int     { return len(r.Text) + len(r.Code) + len(r.LoadError) + len(r.Failure) }
func (*AnswerRow) texts() []string { return []string{"text", "code", "load_error", "failure"} }

// TestRow is one test of a suite of the Test LLM with what came of it.
type TestRow struct {
	Group          string  `json:"group" parquet:"group"`
	Purpose        string  `json:"purpose" parquet:"purpose,dict"`
	Step           int     `json:"step" parquet:"step"`
	Slot           int     `json:"slot" parquet:"slot"`
	Problem        string  `json:"problem" parquet:"problem"`
	CodeVersion    int     `json:"code_version" parquet:"code_version"`
	TestVersion    int     `json:"test_version" parquet:"test_version"`
	Answer         int     `json:"answer" parquet:"answer"`
	Suite          int     `json:"suite" parquet:"suite"`
	Test           int     `json:"test" parquet:"test"`
	Source         string  `json:"source" parquet:"source"`
	Status         string  `json:"status" parquet:"status,dict"`
	Call           string  `json:"call" parquet:"call"`
	Stated         string  `json:"stated" parquet:"stated"`
	Expected       string  `json:"expected" parquet:"expected"`
	Wrong          bool    `json:"wrong" parquet:"wrong"` // kept, with the ground truth's value in place of the stated one
	Verdict        string  `json:"verdict" parquet:"verdict,dict"`
	Detail         string  `json:"detail" parquet:"detail"`
	Rewarded       bool    `json:"rewarded" parquet:"rewarded"` // what follows counts only then
	Masked         bool    `json:"masked" parquet:"masked"`
	SuiteReward    float64 `json:"suite_reward" parquet:"suite_reward"`
	SuiteAdvantage float64 `json:"suite_advantage" parquet:"suite_advantage"`
	RVal           float64 `json:"r_val" parquet:"r_val"`
	RAdv           float64 `json:"r_adv" parquet:"r_adv"`
}

func (r *TestRow) size() int {
	return len(r.Source) + len(r.Call) + len(r.Stated) + len(r.Expected) + len(r.Detail)
}

func (*TestRow) texts() []string { return []string{"source", "call", "stated", "expected", "detail"} }

// answerRows flattens an executed group.
func answerRows(g *query.Lineage) []AnswerRow {
	x := g.Executed
	rows := make([]AnswerRow, len(x.Answers))
	for m := range rows {
		a := &x.Answers[m]
		row := AnswerRow{
			Group: g.Group, Purpose: string(x.Plan.Purpose), Step: x.Plan.Step, Slot: x.Plan.Slot, Problem: x.ProblemID,
			CodeVersion: x.CodeVersion, Answer: m, Loads: a.Loads, LoadError: a.LoadError, Failure: a.Failure,
			Historical: len(a.Historical), Golden: len(a.Golden),
		}
		if g.Code != nil {
			c := &g.Code.Answers[m]
			row.Text, row.Tokens, row.Finish = c.Text, g.AnswerTokens(m), c.Finish
		}
		if g.Tests != nil {
			row.Code = g.Tests.Codes[m]
		}
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

// testRows flattens an executed group.
func testRows(g *query.Lineage) []TestRow {
	var rows []TestRow
	x := g.Executed
	for m := range x.Answers {
		for n := range x.Answers[m].Suites {
			for i := range x.Answers[m].Suites[n].Tests {
				t := &x.Answers[m].Suites[n].Tests[i]
				row := TestRow{
					Group: g.Group, Purpose: string(x.Plan.Purpose), Step: x.Plan.Step, Slot: x.Plan.Slot, Problem: x.ProblemID,
					CodeVersion: x.CodeVersion, TestVersion: x.TestVersion, Answer: m, Suite: n, Test: i,
					Source: t.Source, Status: string(t.Status), Call: t.Call, Stated: t.Stated, Expected: t.Expected,
					Wrong: t.Wrong, Verdict: string(t.Verdict), Detail: t.Detail,
				}
				// Of an answer that was lost, there may be any number of suites.
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
