package problems

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Checkpoints are trained on the default training set and judged on the held-out
// sets. A change of these hashes means that the checkpoints must be made anew, or
// that older measurements do not compare.
var builtinSHA256 = map[string]string{
	BuiltinTraining:    "c415db9e7cb84eb0c6626717e22cdd5021ea94be14e31cfdc62c1009489e5787",
	BuiltinHeldOut:     "c1f52ac979209fd0bf957cd0f3473f9b2b149ca208e5f5db7e434040f8d7b7d6",
	BuiltinHard:        "f2ed680ca3fea515d493db150a6d3a8a90229ee72cfd3b2cef0909be7fbab043",
	BuiltinHardHeldOut: "f9ecfa1407c47c5d7f003a06f700437f6d596de68f3b079bd27527e927bcb01b",
}

func builtinSet(t *testing.T, ref string) []Problem {
	t.Helper()
	set, skipped, err := ReadAll(t.Context(), ref, LoadOptions{})
	if err != nil || skipped > 0 {
		t.Fatalf("%s: %d rows skipped, %v", ref, skipped, err)
	}
	return set
}

func TestBuiltinSetsAreStable(t *testing.T) {
	for ref, want := range builtinSHA256 {
		hash := sha256.New()
		encoder := jsonEncoder(hash)
		for _, p := range builtinSet(t, ref) {
			if err := encoder.Encode(p); err != nil {
				t.Fatal(err)
			}
		}
		if got := fmt.Sprintf("%x", hash.Sum(nil)); got != want {
			t.Errorf("%s has the hash %s, want %s", ref, got, want)
		}
	}
}

func TestBuiltinSets(t *testing.T) {
	training, heldOut := builtinSet(t, BuiltinTraining), builtinSet(t, BuiltinHeldOut)
	if len(training) != 2632 || len(heldOut) != 275 || len(builtinSet(t, BuiltinAll)) != 2632+275 {
		t.Errorf("%d training and %d held-out problems", len(training), len(heldOut))
	}
	const maxQuestionBytes = 140 // small models need short questions
	distinct := distinctProblems{map[string]string{}, map[string]string{}}
	for _, p := range append(training, heldOut...) {
		distinct.check(t, &p, maxQuestionBytes)
		if len(p.Tests) < 7 {
			t.Errorf("%s has %d golden tests", p.ID, len(p.Tests))
		}
	}
	// The harder set. No problem has the question or the solution of a default one.
	hard, hardHeldOut := builtinSet(t, BuiltinHard), builtinSet(t, BuiltinHardHeldOut)
	if len(hard) != 2008 || len(hardHeldOut) != 235 {
		t.Errorf("%d training and %d held-out problems in the harder set", len(hard), len(hardHeldOut))
	}
	const maxHardQuestionBytes = 185
	for _, p := range hard {
		distinct.check(t, &p, maxHardQuestionBytes)
		if len(p.Tests) != 3 {
			t.Errorf("%s has %d golden tests, want a thin suite", p.ID, len(p.Tests))
		}
	}
	for _, p := range hardHeldOut {
		distinct.check(t, &p, maxHardQuestionBytes)
		if len(p.Tests) < 7 {
			t.Errorf("%s has %d golden tests", p.ID, len(p.Tests))
		}
	}
}

// distinctProblems has the IDs of problems by their question and their solution.
type distinctProblems struct{ questions, solutions map[string]string }

func (d distinctProblems) check(t *testing.T, p *Problem, maxQuestionBytes int) {
	t.Helper()
	if err := p.Validate(); err != nil {
		t.Errorf("%s: %v", p.ID, err)
	}
	posable, omitted := p.Posable(true)
	if err := posable.Validate(); err != nil || omitted > 0 {
		t.Errorf("%s cannot be posed whole: %d tests left out, %v", p.ID, omitted, err)
	}
	if len(p.Question) > maxQuestionBytes {
		t.Errorf("%s has a long question: %s", p.ID, p.Question)
	}
	if !strings.HasPrefix(p.Solution, p.StarterCode) {
		t.Errorf("%s does not begin with its starter code", p.ID)
	}
	if d.questions[p.Question] != "" || d.solutions[p.Solution] != "" {
		t.Errorf("%s has the question of %q or the solution of %q", p.ID, d.questions[p.Question], d.solutions[p.Solution])
	}
	d.questions[p.Question], d.solutions[p.Solution] = p.ID, p.ID
}

// The ground truths pass their golden tests, the wrong solutions do not.
func TestGoldenTestsInPython(t *testing.T) {
	type job struct {
		Code  string   `json:"code"`
		Tests []string `json:"tests"`
	}
	var jobs []job
	var passes []bool
	for _, p := range slices.Concat(builtinSet(t, BuiltinAll), builtinSet(t, BuiltinHard), builtinSet(t, BuiltinHardHeldOut)) {
		jobs, passes = append(jobs, job{p.Solution, p.Tests}), append(passes, true)
		if strings.Contains(p.ID, "heldout") && len(p.Buggy) < 2 {
			t.Errorf("%s has %d wrong solutions, want at least 2", p.ID, len(p.Buggy))
		}
		for _, b := range p.Buggy {
			jobs, passes = append(jobs, job{b.Code, p.Tests}), append(passes, false)
		}
	}
	var got []bool
	runPython(t, `
def passes(code, tests):
    scope = {}
    exec(code, scope)
    try:
        exec("\n".join(tests), scope)
    except Exception:
        return False
    return True
answer = [passes(**each) for each in job]`, jobs, &got)
	for i, want := range passes {
		if got[i] != want {
			t.Errorf("passes its golden tests: %v, want %v\n%s", got[i], want, jobs[i].Code)
		}
	}
}
