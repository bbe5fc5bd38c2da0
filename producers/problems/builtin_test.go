package problems

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
)

// Checkpoints are trained on the training set and judged on the held-out set. A
// change of these hashes means that the checkpoints must be made anew and that
// older measurements do not compare.
const (
	trainingSHA256 = "c415db9e7cb84eb0c6626717e22cdd5021ea94be14e31cfdc62c1009489e5787"
	heldOutSHA256  = "c1f52ac979209fd0bf957cd0f3473f9b2b149ca208e5f5db7e434040f8d7b7d6"
)

func builtinSet(t *testing.T, ref string) []Problem {
	t.Helper()
	set, skipped, err := ReadAll(t.Context(), ref, LoadOptions{})
	if err != nil || skipped > 0 {
		t.Fatalf("%s: %d rows skipped, %v", ref, skipped, err)
	}
	return set
}

func TestBuiltinSetsAreStable(t *testing.T) {
	for ref, want := range map[string]string{BuiltinTraining: trainingSHA256, BuiltinHeldOut: heldOutSHA256} {
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
	questions, solutions := map[string]string{}, map[string]string{}
	for _, p := range append(training, heldOut...) {
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
		if len(p.Tests) < 7 {
			t.Errorf("%s has %d golden tests", p.ID, len(p.Tests))
		}
		if !strings.HasPrefix(p.Solution, p.StarterCode) {
			t.Errorf("%s does not begin with its starter code", p.ID)
		}
		if questions[p.Question] != "" || solutions[p.Solution] != "" {
			t.Errorf("%s has the question of %q or the solution of %q", p.ID, questions[p.Question], solutions[p.Solution])
		}
		questions[p.Question], solutions[p.Solution] = p.ID, p.ID
	}
}

// The ground truths pass their golden tests, the wrong solutions do not.
func TestGoldenTestsInPython(t *testing.T) {
	type job struct {
		Code  string   `json:"code"`
		Tests []string `json:"tests"`
	}
	var jobs []job
	var passes []bool
	for _, p := range builtinSet(t, BuiltinAll) {
		jobs, passes = append(jobs, job{p.Solution, p.Tests}), append(passes, true)
		if strings.HasPrefix(p.ID, "heldout") && len(p.Buggy) < 2 {
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
