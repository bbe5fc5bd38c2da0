package problems

import (
	"fmt"
	"runtime"
	"sync"

	"codea1/producers/problems/internal/grammar"
	"codea1/producers/problems/internal/mutant"
)

const (
	builtinSource = "builtin"
	entryPoint    = "solve"
	// buggyPerProblem is how many wrong solutions a held-out problem carries.
	buggyPerProblem = 4
)

type builtinSets struct {
	training, heldOut []Problem
	byID              map[string]*grammar.Problem
}

var builtin = sync.OnceValue(func() builtinSets {
	training, heldOut := grammar.Sets()
	sets := builtinSets{
		training: make([]Problem, len(training)),
		heldOut:  make([]Problem, len(heldOut)),
		byID:     make(map[string]*grammar.Problem, len(training)+len(heldOut)),
	}
	for _, p := range append(training[:len(training):len(training)], heldOut...) {
		sets.byID[p.ID] = p
	}
	workers := runtime.GOMAXPROCS(0)
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			for i := worker; i < len(training); i += workers {
				sets.training[i] = builtinProblem(training[i], nil)
			}
			for i := worker; i < len(heldOut); i += workers {
				sets.heldOut[i] = builtinProblem(heldOut[i], heldOut[i].Mutants())
			}
		})
	}
	wg.Wait()
	return sets
})

// varied picks up to n mutants, one of each kind of mistake before a second.
func varied(mutants []mutant.Mutant, n int) []mutant.Mutant {
	seen := map[mutant.Bug]bool{}
	var first, again []mutant.Mutant
	for _, m := range mutants {
		if seen[m.Bug] {
			again = append(again, m)
			continue
		}
		seen[m.Bug] = true
		first = append(first, m)
	}
	all := append(first, again...)
	return all[:min(n, len(all))]
}

// builtinProblem writes a problem out, with golden tests that catch the mutants
// and a few of these as wrong solutions.
func builtinProblem(p *grammar.Problem, mutants []mutant.Mutant) Problem {
	difficulty := "easy"
	switch {
	case len(p.Parts) > 3:
		difficulty = "hard"
	case len(p.Parts) > 2:
		difficulty = "medium"
	}
	problem := Problem{
		ID: p.ID, Source: builtinSource, Difficulty: difficulty, Question: p.Question(), StarterCode: p.Func.Header(),
		EntryPoint: entryPoint, Solution: p.Solution(), Tests: p.Golden(mutants),
	}
	for _, m := range varied(mutants, buggyPerProblem) {
		problem.Buggy = append(problem.Buggy, Buggy{Code: m.Func.Source(), BugType: string(m.Bug)})
	}
	return problem
}

// Builtin returns the built-in training and held-out problems, made on the
// first call. The slices are the caller's, their contents must not be changed.
func Builtin() (training, heldOut []Problem) {
	sets := builtin()
	return append([]Problem(nil), sets.training...), append([]Problem(nil), sets.heldOut...)
}

// Mutants returns realistic wrong solutions of a built-in problem: each differs
// from the ground truth by one mistake and behaves differently from it, from
// the others and from every held-out ground truth.
func Mutants(p *Problem) ([]Buggy, error) {
	source, ok := builtin().byID[p.ID]
	if !ok || p.Source != builtinSource {
		return nil, fmt.Errorf("mutants of problem %s: only built-in problems have them", p.ID)
	}
	var buggy []Buggy
	for _, m := range source.Mutants() {
		buggy = append(buggy, Buggy{Code: m.Func.Source(), BugType: string(m.Bug)})
	}
	return buggy, nil
}
