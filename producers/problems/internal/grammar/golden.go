package grammar

import (
	"math/rand/v2"
	"strings"

	py "codea1/producers/problems/internal/minipy"
	"codea1/producers/problems/internal/mutant"
)

const (
	maxNear    = 4 // golden tests near a program's constants
	maxCatches = 6 // golden tests added to catch mutants
)

// Question returns the problem's question in its own fixed wording.
func (p *Problem) Question() string {
	return p.Say.Say(rand.New(rand.NewPCG(p.Fingerprint, seed)).IntN)
}

// Solution returns the ground truth.
func (p *Problem) Solution() string { return p.Func.Source() }

// Assert returns a test that a call of solve has a value.
func Assert(input []py.Value, value py.Value) string {
	arguments := make([]string, len(input))
	for i, v := range input {
		arguments[i] = py.Literal(v)
	}
	return "assert solve(" + strings.Join(arguments, ",") + ") == " + py.Literal(value)
}

// Golden returns the golden tests: the edge cases of the domain, inputs at and
// around the program's constants, and inputs that catch the given mutants.
func (p *Problem) Golden(catch []mutant.Mutant) []string {
	var tests []string
	seen := map[string]bool{}
	add := func(input []py.Value) {
		value, err := p.Func.Call(input...)
		if err != nil {
			return
		}
		if test := Assert(input, value); !seen[test] {
			seen[test] = true
			tests = append(tests, test)
		}
	}
	for _, input := range p.Domain.Edges {
		add(input)
	}
	near := 0
	for _, k := range constants(p.Func.Body, nil) {
		for _, input := range p.Domain.near(k) {
			if near < maxNear {
				add(input)
				near++
			}
		}
	}
	for _, m := range catch {
		if len(tests) >= len(p.Domain.Edges)+maxNear+maxCatches {
			break
		}
		if input := p.Telling(m, p.Domain.Probes); input != nil {
			add(input)
		}
	}
	return tests
}

// constants lists the ints of the program around which its results change; 0,
// 1 and 2 are left to the edge cases.
func constants(n *py.Node, found []int) []int {
	if n == nil {
		return found
	}
	if n.Op == py.OpInt && n.N > 2 {
		return append(found, n.N)
	}
	for _, kid := range n.Kids {
		found = constants(kid, found)
	}
	return found
}

// Telling returns the first input on which the mutant differs from the truth,
// nil if there is none.
func (p *Problem) Telling(m mutant.Mutant, inputs [][]py.Value) []py.Value {
	for _, input := range inputs {
		truth, err := p.Func.Call(input...)
		if err != nil {
			continue
		}
		got, err := m.Func.Call(input...)
		if err != nil || !py.Equal(got, truth) {
			return input
		}
	}
	return nil
}

// Mutants returns the realistic mistakes that behave differently from the
// truth, from one another, and from every held-out problem. They are made on
// the first call and must not be changed.
func (p *Problem) Mutants() []mutant.Mutant {
	p.mutantsOnce.Do(func() { p.mutants = p.findMutants() })
	return p.mutants
}

func (p *Problem) findMutants() []mutant.Mutant {
	heldOut := heldOutFingerprints()
	seen := map[uint64]bool{p.Fingerprint: true}
	var mutants []mutant.Mutant
	for _, m := range mutant.Of(p.Func) {
		fp := behaviourOf(m.Func, p.Domain).fingerprint(p.Domain)
		if !seen[fp] && !heldOut[fp] {
			seen[fp] = true
			mutants = append(mutants, m)
		}
	}
	return mutants
}
