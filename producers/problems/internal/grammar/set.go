package grammar

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	py "codea1/producers/problems/internal/minipy"
	"codea1/producers/problems/internal/mutant"
)

const (
	seed = 20261120
	// maxDrawsPerProblem bounds the search: a family that accepts less than one
	// draft in this many is a mistake in its parts.
	maxDrawsPerProblem = 40
	// heldOutOneIn is how many compositions there are to each held-out one.
	heldOutOneIn = 10
	// minSeen is how often training must show each part of a held-out problem.
	minSeen = 5
	// minWrong is how many slips, at least, must change a problem's behaviour.
	minWrong = 4
	// commonest is the largest share of the probes, in percent, that may give
	// one and the same result.
	commonest = 80
)

// Problem is one problem of the built-in sets.
type Problem struct {
	ID       string
	Family   string
	Skeleton string   // the composition, without its constants
	Parts    []string // the parts it is composed of
	Domain   *Domain
	Say      Phrase
	Func     *py.Func
	// Fingerprint stands for the results on all probes of the domain.
	Fingerprint uint64

	mutantsOnce sync.Once
	mutants     []mutant.Mutant
}

// Sets returns the training and the held-out problems. They are made on the
// first call, are the same in every process, and must not be changed.
var Sets = sync.OnceValues(makeSets)

func makeSets() (training, heldOut []*Problem) {
	drawn := make([][]*Problem, len(families))
	var wg sync.WaitGroup
	for i, f := range families {
		wg.Go(func() { drawn[i] = f.problems() })
	}
	wg.Wait()
	seen := map[uint64]bool{}
	var held []*Problem
	for _, problems := range drawn {
		for _, p := range problems {
			if seen[p.Fingerprint] {
				continue
			}
			seen[p.Fingerprint] = true
			if isHeldOut(p.Skeleton) {
				held = append(held, p)
			} else {
				training = append(training, p)
			}
		}
	}
	known := map[string]int{}
	for i, p := range training {
		p.ID = fmt.Sprintf("train-%04d", i+1)
		for _, part := range p.Parts {
			known[part]++
		}
	}
	for _, p := range held {
		if !slices.ContainsFunc(p.Parts, func(part string) bool { return known[part] < minSeen }) {
			heldOut = append(heldOut, p)
			p.ID = fmt.Sprintf("heldout-%04d", len(heldOut))
		}
	}
	return training, heldOut
}

var heldOutFingerprints = sync.OnceValue(func() map[uint64]bool {
	_, heldOut := Sets()
	prints := make(map[uint64]bool, len(heldOut))
	for _, p := range heldOut {
		prints[p.Fingerprint] = true
	}
	return prints
})

// isHeldOut decides by the composition alone, so that a held-out composition
// never occurs in training with another constant.
func isHeldOut(skeleton string) bool {
	return hashOf([]byte(skeleton))>>8%heldOutOneIn == 0
}

// problems draws until the quota is reached, keeping drafts that say exactly
// what matters and behave like no draft before them.
func (f family) problems() []*Problem {
	r := rand.New(rand.NewPCG(seed, hashOf([]byte(f.name))))
	drawn, seen := map[string]bool{}, map[uint64]bool{}
	problems := make([]*Problem, 0, f.quota)
	for range f.quota * maxDrawsPerProblem {
		if len(problems) == f.quota {
			break
		}
		d := f.draw(r)
		source := d.source()
		if drawn[source] {
			continue
		}
		drawn[source] = true
		if p := d.problem(source, seen); p != nil {
			seen[p.Fingerprint] = true
			problems = append(problems, p)
		}
	}
	return problems
}

// problem returns nil for a draft that raises, hardly ever changes its result,
// behaves like one seen before, has a part that makes no difference, or can
// hardly be got wrong.
func (d draft) problem(source string, seen map[uint64]bool) *Problem {
	function, err := py.Parse(source)
	if err != nil {
		panic(fmt.Sprintf("grammar: the parts of %s do not fit together: %v\n%s", d.skeleton(), err, source))
	}
	b := behaviourOf(function, d.domain)
	fp := b.fingerprint(d.domain)
	if seen[fp] || !b.telling() {
		return nil
	}
	wrong := 0
	for _, m := range mutant.Slips(function) {
		if wrong >= minWrong && !m.Bug.Omission() {
			continue
		}
		switch shared := b.sharedBy(m.Func(), d.domain); {
		case !shared:
			wrong++
		case m.Bug.Omission():
			return nil
		}
	}
	if wrong < minWrong {
		return nil
	}
	return &Problem{
		Family: d.family, Skeleton: d.skeleton(), Parts: d.parts(), Domain: d.domain, Say: d.say,
		Func: function, Fingerprint: fp,
	}
}
