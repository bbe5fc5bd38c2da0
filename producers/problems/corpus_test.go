package problems

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

// defaultCorpus has the values that the flags have when they are not given.
func defaultCorpus(t *testing.T, role string) Corpus {
	t.Helper()
	var corpus Corpus
	parser, err := kong.New(&corpus)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse([]string{"--role", role}); err != nil {
		t.Fatal(err)
	}
	return corpus
}

func corpusRows(t *testing.T, role string, seed uint64, rows int, mix Mix) []Row {
	t.Helper()
	corpus := defaultCorpus(t, role)
	corpus.Seed, corpus.Rows = seed, rows
	if mix != (Mix{}) {
		corpus.Mix = mix
	}
	var all []Row
	err := corpus.Each(t.Context(), func(row Row) error {
		all = append(all, row)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != rows {
		t.Fatalf("%d rows, want %d", len(all), rows)
	}
	return all
}

func unfence(t *testing.T, text string) string {
	t.Helper()
	body, ok := strings.CutPrefix(text, "```python\n")
	body, closed := strings.CutSuffix(body, "\n```")
	if !ok || !closed {
		t.Fatalf("not one fenced block: %q", text)
	}
	return body
}

// wordings returns all questions that a phrase of the corpus data may become.
func wordings(phrase [][]string) []string {
	texts := []string{""}
	for _, alternatives := range phrase {
		var longer []string
		for _, text := range texts {
			for _, piece := range alternatives {
				if text != "" && piece != "" && piece[0] != ',' {
					piece = " " + piece
				}
				longer = append(longer, text+piece)
			}
		}
		texts = longer
	}
	for i := range texts {
		texts[i] += "."
	}
	return texts
}

func TestCorpusNeverShowsHeldOutProblems(t *testing.T) {
	questions, solutions := map[string]bool{}, map[string]bool{}
	for _, p := range builtinSet(t, BuiltinHeldOut) {
		questions[p.Question], solutions[p.Solution] = true, true
	}
	shown, training := map[string]bool{}, builtinSet(t, BuiltinTraining)
	data, err := corpusData()
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		var problem struct {
			Phrase   [][]string
			Solution string
			Mutants  []string
		}
		if err := json.Unmarshal([]byte(line), &problem); err != nil {
			t.Fatal(err)
		}
		if i >= len(training) || problem.Solution != training[i].Solution {
			t.Fatalf("problem %d is not the one of the training set:\n%s", i+1, problem.Solution)
		}
		for _, question := range wordings(problem.Phrase) {
			shown[question] = true
			if questions[question] {
				t.Errorf("%s may have the question of a held-out problem: %s", training[i].ID, question)
			}
		}
		if !shown[training[i].Question] {
			t.Errorf("%s cannot have its own question: %s", training[i].ID, training[i].Question)
		}
		for _, code := range append(problem.Mutants, problem.Solution) {
			if solutions[code] {
				t.Errorf("%s may show the solution of a held-out problem:\n%s", training[i].ID, code)
			}
		}
	}
	for _, row := range corpusRows(t, "code", 7, 500, Mix{}) {
		if !shown[row.Prompt] {
			t.Errorf("no training problem has the question %s", row.Prompt)
		}
	}
}

// judgeSuites counts, for each suite, the asserts that state a wrong value and
// those on which the code shown differs from the ground truth.
const judgeSuites = `
from functools import lru_cache
from values import function, outcome
function = lru_cache(maxsize=None)(function)
def judge(truth, code, asserts):
    wrong = caught = 0
    for line in asserts:
        call, stated = line[len("assert solve("):].split(") == ")
        arguments = eval("[" + call + "]")
        value = outcome(function(truth), arguments)
        assert value is not None, "the truth raises on " + line
        wrong += value != outcome(lambda: eval(stated), [])
        caught += value != outcome(function(code), arguments)
    return {"wrong": wrong, "caught": caught}
answer = [judge(**suite) for suite in job]`

func TestCorpusMix(t *testing.T) {
	const manyRows, someRows = 1000, 200
	clean := corpusRows(t, "code", 5, manyRows, Mix{Asserts: 1})
	solutions := map[string]string{} // by question, in any wording
	for _, row := range clean {
		solutions[row.Prompt] = unfence(t, row.Response)
	}
	for _, test := range []struct {
		rows int
		mix  Mix
	}{
		{manyRows, defaultCorpus(t, "code").Mix},
		{someRows, Mix{BugRate: 0, DefectRate: 0, WrongRate: 0, SimpleRate: 1, Asserts: 2}},
		{someRows, Mix{BugRate: 1, DefectRate: 1, TargetRate: 1, WrongRate: 0, Asserts: 4}},
	} {
		rows, mix := test.rows, test.mix
		buggy := 0
		for i, row := range corpusRows(t, "code", 5, rows, mix) {
			if row.Prompt != clean[i].Prompt {
				t.Fatalf("row %d asks %q under one mix and %q under another", i, row.Prompt, clean[i].Prompt)
			}
			if row.Response != clean[i].Response {
				buggy++
			}
		}
		share(t, "buggy answers", buggy, rows, mix.BugRate)

		type suite struct {
			Truth   string   `json:"truth"`
			Code    string   `json:"code"`
			Asserts []string `json:"asserts"`
		}
		var suites []suite
		asserts := 0
		for _, row := range corpusRows(t, "test", 5, rows, mix) {
			question, shown, _ := strings.Cut(row.Prompt, "\n")
			s := suite{solutions[question], unfence(t, shown), strings.Split(unfence(t, row.Response), "\n")}
			if len(s.Asserts) != mix.Asserts {
				t.Fatalf("%d asserts, want %d: %q", len(s.Asserts), mix.Asserts, row.Response)
			}
			suites, asserts = append(suites, s), asserts+len(s.Asserts)
		}
		var judged []struct{ Wrong, Caught int }
		runPython(t, judgeSuites, suites, &judged)
		wrong, defects, targeted := 0, 0, 0
		for i, s := range suites {
			wrong += judged[i].Wrong
			if s.Code == s.Truth {
				continue
			}
			defects++
			if judged[i].Caught > 0 {
				targeted++
			}
		}
		share(t, "wrong asserts", wrong, asserts, mix.WrongRate)
		share(t, "defects shown", defects, rows, mix.DefectRate)
		if mix.TargetRate == 1 {
			share(t, "defects caught", targeted, defects, 1)
		}
		if mix.TargetRate < 1 && targeted > defects*3/4 {
			t.Errorf("%d of %d suites catch the defect they are shown: nothing is left to learn", targeted, defects)
		}
		t.Logf("%+v: %d of %d shown defects have an input that shows them", mix, targeted, defects)
	}
}

func share(t *testing.T, what string, part, whole int, want float64) {
	t.Helper()
	const tolerance = 0.05
	if got := float64(part) / float64(whole); got < want-tolerance || got > want+tolerance {
		t.Errorf("%s: %.3f of %d, want about %.2f", what, got, whole, want)
	}
}

func TestCorpusIsDeterministic(t *testing.T) {
	for _, role := range []string{"code", "test"} {
		first := corpusRows(t, role, 1, rowsPerProcess+1, Mix{})
		if diff := cmp.Diff(first[:50], corpusRows(t, role, 1, 50, Mix{})); diff != "" {
			t.Errorf("role %s: the same seed gives other rows for another number of rows or processes:\n%s", role, diff)
		}
		if cmp.Equal(first[:50], corpusRows(t, role, 2, 50, Mix{})) {
			t.Errorf("role %s: another seed gives the same rows", role)
		}
	}
}

func TestCorpusRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*Corpus){
		"role":    func(c *Corpus) { c.Role = "judge" },
		"rate":    func(c *Corpus) { c.Mix.WrongRate = 1.5 },
		"asserts": func(c *Corpus) { c.Mix.Asserts = 0 },
		"rows":    func(c *Corpus) { c.Rows = -1 },
		"python":  func(c *Corpus) { c.Python = "no-such-python" },
		"program": func(c *Corpus) { c.Python = "false" },
	} {
		corpus := defaultCorpus(t, "test")
		corpus.Rows = 1
		spoil(&corpus)
		if err := corpus.Each(t.Context(), func(Row) error { return nil }); !errors.Is(err, errCorpus) {
			t.Errorf("a bad %s ends with %v", name, err)
		}
	}
}

func TestCorpusEndsEarly(t *testing.T) {
	corpus := defaultCorpus(t, "code")
	enough := errors.New("enough")
	if err := corpus.Each(t.Context(), func(Row) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("the visitor's error is %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := corpus.Each(ctx, func(Row) error {
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled corpus ends with %v", err)
	}
}

func BenchmarkCorpus(b *testing.B) {
	for _, role := range []string{"code", "test"} {
		b.Run(role, func(b *testing.B) {
			corpus := Corpus{Role: role, Rows: b.N, Python: "python3", Mix: Mix{0.5, 0.5, 0.3, 0.3, 0.5, 3}}
			if err := corpus.Each(b.Context(), func(Row) error { return nil }); err != nil {
				b.Fatal(err)
			}
		})
	}
}
