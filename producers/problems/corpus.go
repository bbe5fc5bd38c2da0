package problems

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"

	"codea1/producers/problems/internal/grammar"
	"codea1/producers/problems/internal/minipy"
	"codea1/producers/problems/internal/mutant"
)

// Row is one example of supervised fine-tuning.
type Row struct {
	Prompt   string `json:"prompt"`
	Response string `json:"response"`
}

// Mix sets how flawed a corpus is: a checkpoint that is to improve by
// reinforcement must be good enough to answer and wrong often enough to learn.
type Mix struct {
	BugRate    float64 `help:"Share of code answers that are a realistic mistake." default:"0.5"`
	DefectRate float64 `help:"Share of test prompts that show code with a defect." default:"0.5"`
	TargetRate float64 `help:"Share of suites shown a defect that aim an input at it; the others avoid it where they can." default:"0.3"`
	WrongRate  float64 `help:"Share of asserts that state a wrong answer." default:"0.3"`
	SimpleRate float64 `help:"Share of asserts on an input that is easy to work out." default:"0.5"`
	Asserts    int     `help:"Asserts per suite." default:"3"`
}

// DefaultMix is the mix of the shipped checkpoints.
func DefaultMix() Mix {
	return Mix{BugRate: 0.5, DefectRate: 0.5, TargetRate: 0.3, WrongRate: 0.3, SimpleRate: 0.5, Asserts: 3}
}

const (
	maxAsserts = 16
	maxRows    = 10_000_000
	// maxInputDraws bounds the search for an input with some property.
	maxInputDraws = 40
)

var errMix = errors.New("corpus mix")

func (m Mix) validate() error {
	for _, rate := range []struct {
		name  string
		value float64
	}{
		{"bug", m.BugRate}, {"defect", m.DefectRate}, {"target", m.TargetRate}, {"wrong", m.WrongRate}, {"simple", m.SimpleRate},
	} {
		if !(rate.value >= 0 && rate.value <= 1) { // NaN too
			return fmt.Errorf("%w: %s rate %v is not between 0 and 1", errMix, rate.name, rate.value)
		}
	}
	if m.Asserts < 1 || m.Asserts > maxAsserts {
		return fmt.Errorf("%w: %d asserts per suite is not between 1 and %d", errMix, m.Asserts, maxAsserts)
	}
	return nil
}

// CodePrompt is the user's turn shown to the Code LLM.
func CodePrompt(question string) string { return question }

// TestPrompt is the user's turn shown to the Test LLM.
func TestPrompt(question, code string) string { return question + "\n" + fence(code) }

func fence(code string) string { return "```python\n" + code + "\n```" }

// Corpus returns examples for the role "code" or "test", made from the built-in
// training problems alone. The same arguments give the same rows.
func Corpus(role string, seed uint64, rows int, mix Mix) (iter.Seq[Row], error) {
	if err := mix.validate(); err != nil {
		return nil, err
	}
	if rows < 0 || rows > maxRows {
		return nil, fmt.Errorf("corpus: %d rows is not between 0 and %d", rows, maxRows)
	}
	write := map[string]func(*author) Row{"code": (*author).answer, "test": (*author).suite}[role]
	if write == nil {
		return nil, fmt.Errorf("corpus: role %q is neither code nor test", role)
	}
	return func(yield func(Row) bool) {
		training, _ := grammar.Sets()
		for i := range rows {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			if !yield(write(&author{r, mix, training[r.IntN(len(training))]})) {
				return
			}
		}
	}, nil
}

// author writes one row about one problem.
type author struct {
	*rand.Rand
	mix     Mix
	problem *grammar.Problem
}

func (a *author) chance(rate float64) bool { return a.Float64() < rate }

func (a *author) mutant() mutant.Mutant {
	mutants := a.problem.Mutants()
	return mutants[a.IntN(len(mutants))]
}

// answer is the ground truth or, at the bug rate, a mistake.
func (a *author) answer() Row {
	question := a.problem.Say.Say(a.IntN)
	code := a.problem.Solution()
	if a.chance(a.mix.BugRate) {
		code = a.mutant().Func.Source()
	}
	return Row{Prompt: CodePrompt(question), Response: fence(code)}
}

// suite is a handful of asserts about the ground truth or a mistake.
func (a *author) suite() Row {
	question := a.problem.Say.Say(a.IntN)
	code := a.problem.Solution()
	wants := make([]wanted, a.mix.Asserts)
	if a.chance(a.mix.DefectRate) {
		shown := a.mutant()
		code = shown.Func.Source()
		shows := func(input []minipy.Value) bool {
			return a.problem.Telling(shown, [][]minipy.Value{input}) != nil
		}
		if a.chance(a.mix.TargetRate) {
			wants[a.IntN(len(wants))] = shows
		} else {
			for i := range wants {
				wants[i] = func(input []minipy.Value) bool { return !shows(input) }
			}
		}
	}
	used := map[string]bool{}
	var asserts []string
	for _, want := range wants {
		asserts = append(asserts, a.assert(a.input(used, want)))
	}
	return Row{Prompt: TestPrompt(question, code), Response: fence(strings.Join(asserts, "\n"))}
}

// wanted says what an assert's input should be like; nil wants any.
type wanted func(input []minipy.Value) bool

// input draws one that is new to the suite and, if the draws allow, wanted.
func (a *author) input(used map[string]bool, want wanted) []minipy.Value {
	simple := a.chance(a.mix.SimpleRate)
	var input []minipy.Value
	for range maxInputDraws {
		input = a.problem.Domain.Draw(a.Rand, simple)
		key := minipy.Literal(minipy.List(input))
		if !used[key] && (want == nil || want(input)) {
			used[key] = true
			break
		}
		if a.IntN(4) == 0 { // perhaps there is none of this size
			simple = !simple
		}
	}
	return input
}

// assert states the truth or, at the wrong rate, a plausible other value.
func (a *author) assert(input []minipy.Value) string {
	truth, err := a.problem.Func.Call(input...)
	if err != nil { // the random inputs of a domain are all defined
		panic(fmt.Sprintf("corpus: %s raises %v on %s", a.problem.ID, err, minipy.Literal(minipy.List(input))))
	}
	value := truth
	if a.chance(a.mix.WrongRate) {
		value = a.misjudge(input, truth)
	}
	return grammar.Assert(input, value)
}

// misjudge returns what someone who makes a mistake would expect: the result of
// a mutant, or the truth with a small slip.
func (a *author) misjudge(input []minipy.Value, truth minipy.Value) minipy.Value {
	if a.IntN(2) == 0 {
		value, err := a.mutant().Func.Call(input...)
		if _, stream := value.(minipy.Stream); err == nil && !stream && !minipy.Equal(value, truth) {
			return value
		}
	}
	switch v := truth.(type) {
	case minipy.Bool:
		return !v
	case minipy.Int:
		return v + minipy.Int(1-2*a.IntN(2))
	case minipy.Str:
		if len(v) > 0 {
			at := a.IntN(len(v))
			return v[:at] + v[at+1:]
		}
		return minipy.Str("a")
	case minipy.List:
		if len(v) > 0 {
			at := a.IntN(len(v))
			return append(append(minipy.List{}, v[:at]...), v[at+1:]...)
		}
		return minipy.List{minipy.Int(0)}
	default:
		return minipy.Int(0)
	}
}
