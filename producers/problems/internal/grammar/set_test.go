package grammar

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	py "codea1/producers/problems/internal/minipy"
)

// golden is the SHA-256 of everything in both sets. Checkpoints are trained on
// the training set and judged on the held-out set: a change here means that
// they must be made anew, and that older measurements do not compare.
const golden = "0b483dd164c769ac873f4f79a5a8fa7e99ebf978496105ca12d3acf122414c12"

func TestSetsAreStable(t *testing.T) {
	training, heldOut := Sets()
	h := sha256.New()
	for _, p := range append(training[:len(training):len(training)], heldOut...) {
		fmt.Fprintf(h, "%s\n%s\n%s\n%s\n", p.ID, p.Question(), p.Solution(), strings.Join(p.Golden(nil), "\n"))
	}
	if got := fmt.Sprintf("%x", h.Sum(nil)); got != golden {
		t.Errorf("the built-in sets hash to %s, want %s", got, golden)
	}
}

func TestSizes(t *testing.T) {
	training, heldOut := Sets()
	t.Logf("%d training, %d held-out problems", len(training), len(heldOut))
	if len(training) < 2000 || len(heldOut) < 200 {
		t.Errorf("%d training and %d held-out problems, want at least 2000 and 200", len(training), len(heldOut))
	}
	perFamily := map[string]int{}
	for _, p := range training {
		perFamily[p.Family]++
	}
	heldPerFamily := map[string]int{}
	for _, p := range heldOut {
		heldPerFamily[p.Family]++
	}
	for _, f := range families {
		if got := perFamily[f.name] + heldPerFamily[f.name]; got < f.quota*9/10 {
			t.Errorf("family %s has %d problems, its quota is %d", f.name, got, f.quota)
		}
		if heldPerFamily[f.name] == 0 {
			t.Errorf("family %s has no held-out problem", f.name)
		}
	}
}

func TestNoTwoProblemsBehaveAlike(t *testing.T) {
	training, heldOut := Sets()
	byPrint, byQuestion := map[uint64]*Problem{}, map[string]*Problem{}
	for _, p := range append(training[:len(training):len(training)], heldOut...) {
		if other := byPrint[p.Fingerprint]; other != nil {
			t.Errorf("%s and %s behave alike:\n%s\n%s", p.ID, other.ID, p.Solution(), other.Solution())
		}
		if got := behaviourOf(p.Func, p.Domain).fingerprint(p.Domain); got != p.Fingerprint {
			t.Errorf("%s: its function has the fingerprint %x, not %x", p.ID, got, p.Fingerprint)
		}
		if other := byQuestion[p.Question()]; other != nil {
			t.Errorf("%s and %s ask the same: %s", p.ID, other.ID, p.Question())
		}
		byPrint[p.Fingerprint], byQuestion[p.Question()] = p, p
	}
}

func TestHeldOutAreUnseenCompositionsOfSeenParts(t *testing.T) {
	training, heldOut := Sets()
	parts, skeletons := map[string]int{}, map[string]bool{}
	for _, p := range training {
		skeletons[p.Skeleton] = true
		for _, part := range p.Parts {
			parts[part]++
		}
	}
	for _, p := range heldOut {
		if skeletons[p.Skeleton] {
			t.Errorf("%s: the composition %s occurs in training", p.ID, p.Skeleton)
		}
		for _, part := range p.Parts {
			if parts[part] < minSeen {
				t.Errorf("%s: the part %s occurs %d times in training, want at least %d", p.ID, part, parts[part], minSeen)
			}
		}
	}
}

// Every random input is one that the ground truth answers, so that a corpus
// can state the answer.
func TestTruthsAnswerRandomInputs(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	training, heldOut := Sets()
	for _, p := range append(training[:len(training):len(training)], heldOut...) {
		for i := range 10 {
			input := p.Domain.Draw(r, i%2 == 0)
			if value, err := p.Func.Call(input...); err != nil {
				t.Errorf("%s on %s: %v, %v", p.Solution(), py.Literal(py.List(input)), value, err)
			}
		}
	}
}

func TestMutantsDiffer(t *testing.T) {
	training, heldOut := Sets()
	caught, all := 0, 0
	check := func(p *Problem, tests []string) {
		mutants := p.Mutants()
		if len(mutants) < 2 {
			t.Errorf("%s has %d mutants, want at least 2:\n%s", p.ID, len(mutants), p.Solution())
		}
		examples := examples(t, tests)
		if !passes(p.Func, examples) {
			t.Errorf("%s fails its golden tests", p.ID)
		}
		prints := map[uint64]bool{p.Fingerprint: true}
		for _, m := range mutants {
			fp := behaviourOf(m.Func, p.Domain).fingerprint(p.Domain)
			if prints[fp] {
				t.Errorf("%s: the mutant %s is not new:\n%s", p.ID, m.Bug, m.Func.Source())
			}
			prints[fp] = true
			if heldOutFingerprints()[fp] {
				t.Errorf("%s: the mutant %s solves a held-out problem", p.ID, m.Bug)
			}
			all++
			if !passes(m.Func, examples) {
				caught++
			}
		}
	}
	for _, p := range training {
		check(p, p.Golden(nil))
	}
	trainingShare := float64(caught) / float64(all)
	caught, all = 0, 0
	for _, p := range heldOut {
		check(p, p.Golden(p.Mutants()))
	}
	heldOutShare := float64(caught) / float64(all)
	t.Logf("golden tests catch %.1f%% of the training and %.1f%% of the held-out problems' mutants", 100*trainingShare, 100*heldOutShare)
	if trainingShare < 0.9 || heldOutShare < 0.97 {
		t.Errorf("golden tests catch %.3f and %.3f of the mutants, want 0.9 and 0.97", trainingShare, heldOutShare)
	}
}

// example is a golden test taken apart.
type example struct {
	input py.List
	want  py.Value
}

// examples reads golden tests of the form "assert solve(arguments) == value".
func examples(t *testing.T, tests []string) []example {
	t.Helper()
	var examples []example
	for _, test := range tests {
		call, want, ok := strings.Cut(strings.TrimPrefix(test, "assert solve("), ") == ")
		if !ok {
			t.Fatalf("no golden test: %s", test)
		}
		parsed, err := py.Parse("def example(none):\n    return [[" + call + "], " + want + "]")
		if err != nil {
			t.Fatalf("%s: %v", test, err)
		}
		value, err := parsed.Call(py.None{})
		if err != nil {
			t.Fatalf("%s: %v", test, err)
		}
		parts := value.(py.List)
		examples = append(examples, example{parts[0].(py.List), parts[1]})
	}
	return examples
}

func passes(f *py.Func, examples []example) bool {
	for _, e := range examples {
		if got, err := f.Call(e.input...); err != nil || !py.Equal(got, e.want) {
			return false
		}
	}
	return true
}

func BenchmarkSets(b *testing.B) {
	for b.Loop() {
		makeSets()
	}
}
