package problems

import (
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"codea1/producers/problems/internal/minipy"
)

func corpus(t *testing.T, role string, seed uint64, rows int, mix Mix) []Row {
	t.Helper()
	sequence, err := Corpus(role, seed, rows, mix)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(sequence)
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

func TestCorpusNeverShowsHeldOutProblems(t *testing.T) {
	_, heldOut := Builtin()
	questions, solutions := map[string]bool{}, map[string]bool{}
	for _, p := range heldOut {
		solutions[p.Solution] = true
		p := builtin().byID[p.ID]
		for i := range 50 { // the wordings of a held-out question
			questions[p.Say.Say(func(n int) int { return i % n })] = true
		}
	}
	for _, role := range []string{"code", "test"} {
		for _, row := range corpus(t, role, 7, 8000, DefaultMix()) {
			question, shown, _ := strings.Cut(row.Prompt, "\n")
			if questions[question] {
				t.Errorf("role %s is shown the held-out question %q", role, question)
			}
			code := row.Response
			if role == "test" {
				code = shown
			}
			if code = unfence(t, code); solutions[code] {
				t.Errorf("role %s is shown the solution of a held-out problem:\n%s", role, code)
			}
		}
	}
}

func TestCorpusMix(t *testing.T) {
	const rows = 4000
	solutions := map[string]string{} // by question, in any wording
	for _, mix := range []Mix{DefaultMix(), {BugRate: 0, DefectRate: 0, WrongRate: 0, SimpleRate: 1, Asserts: 2}, {BugRate: 1, DefectRate: 1, TargetRate: 1, WrongRate: 0, Asserts: 4}} {
		clean := corpus(t, "code", 5, rows, Mix{Asserts: 1})
		for _, row := range clean {
			solutions[row.Prompt] = unfence(t, row.Response)
		}
		buggy := 0
		for i, row := range corpus(t, "code", 5, rows, mix) {
			if row.Prompt != clean[i].Prompt {
				t.Fatalf("row %d asks %q under one mix and %q under another", i, row.Prompt, clean[i].Prompt)
			}
			if row.Response != clean[i].Response {
				buggy++
			}
		}
		share(t, "buggy answers", buggy, rows, mix.BugRate)

		wrong, defects, targeted, asserts := 0, 0, 0, 0
		for _, row := range corpus(t, "test", 5, rows, mix) {
			question, shown, _ := strings.Cut(row.Prompt, "\n")
			truth, code := parse(t, solutions[question]), parse(t, unfence(t, shown))
			defect := truth.Source() != code.Source()
			caught := false
			lines := strings.Split(unfence(t, row.Response), "\n")
			if len(lines) != mix.Asserts {
				t.Fatalf("%d asserts, want %d: %q", len(lines), mix.Asserts, row.Response)
			}
			for _, line := range lines {
				input, stated := readAssert(t, line)
				value, err := truth.Call(input...)
				if err != nil {
					t.Fatalf("the truth raises %v on %s", err, line)
				}
				if !minipy.Equal(value, stated) {
					wrong++
				}
				got, err := code.Call(input...)
				caught = caught || err != nil || !minipy.Equal(got, value)
			}
			asserts += len(lines)
			if defect {
				defects++
				if caught {
					targeted++
				}
			} else if caught {
				t.Errorf("the truth does not agree with itself: %s", row.Response)
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

func parse(t *testing.T, source string) *minipy.Func {
	t.Helper()
	f, err := minipy.Parse(source)
	if err != nil {
		t.Fatalf("%v in %q", err, source)
	}
	return f
}

// readAssert takes "assert solve(arguments) == value" apart.
func readAssert(t *testing.T, line string) (input []minipy.Value, stated minipy.Value) {
	t.Helper()
	call, want, ok := strings.Cut(strings.TrimPrefix(line, "assert solve("), ") == ")
	if !ok {
		t.Fatalf("no assert: %q", line)
	}
	both, err := parse(t, "def read(none):\n    return [["+call+"], "+want+"]").Call(minipy.None{})
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	parts := both.(minipy.List)
	return parts[0].(minipy.List), parts[1]
}

func TestCorpusIsDeterministic(t *testing.T) {
	for _, role := range []string{"code", "test"} {
		first := corpus(t, role, 1, 300, DefaultMix())
		if diff := cmp.Diff(first, corpus(t, role, 1, 300, DefaultMix())); diff != "" {
			t.Errorf("role %s: the same seed gives other rows:\n%s", role, diff)
		}
		if diff := cmp.Diff(first[:100], corpus(t, role, 1, 100, DefaultMix())); diff != "" {
			t.Errorf("role %s: the number of rows changes the first ones:\n%s", role, diff)
		}
		if cmp.Equal(first, corpus(t, role, 2, 300, DefaultMix())) {
			t.Errorf("role %s: another seed gives the same rows", role)
		}
	}
}

func TestCorpusRefuses(t *testing.T) {
	good := DefaultMix()
	bad := good
	bad.WrongRate = 1.5
	none := good
	none.Asserts = 0
	for name, call := range map[string]func() error{
		"role":    func() error { _, err := Corpus("judge", 1, 1, good); return err },
		"rate":    func() error { _, err := Corpus("test", 1, 1, bad); return err },
		"asserts": func() error { _, err := Corpus("test", 1, 1, none); return err },
		"rows":    func() error { _, err := Corpus("test", 1, -1, good); return err },
	} {
		if call() == nil {
			t.Errorf("a bad %s is accepted", name)
		}
	}
}

func TestDefaultMixIsTheCommandsDefault(t *testing.T) {
	var command CorpusCommand
	parser, err := kong.New(&command)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse([]string{"--role", "code"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(DefaultMix(), command.Mix); diff != "" {
		t.Errorf("the flags' defaults are not DefaultMix:\n%s", diff)
	}
}
