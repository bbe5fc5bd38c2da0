package rewards

import "codea1/events"

// Deltas returns the changes that the group makes to the Mistake Book of its
// problem, decrements first:
//
//   - each historical test that passes: -1 for every answer that passes it,
//     in the order of the group's historical tests;
//   - each new kept test that fails: +1 for every failing run, over all suites
//     of all answers, in the order of the first failures.
//
// All kept tests count here, including those after the first K, which earn no
// reward. Answers that do not load do not count. Answers and suites that were
// lost to an infrastructure failure do not count either.
func Deltas(g *events.CodeExecuted) []events.BookDelta {
	var deltas []events.BookDelta
	for i, h := range g.Historical {
		passes := 0
		for m := range g.Answers {
			a := &g.Answers[m]
			if counts(a) && a.Historical[i] == events.VerdictPass {
				passes++
			}
		}
		if passes > 0 {
			deltas = append(deltas, events.BookDelta{Call: h.Call, Expected: h.Expected, Change: -passes})
		}
	}

	type key struct{ call, expected string }
	at := map[key]int{}
	for m := range g.Answers {
		if !counts(&g.Answers[m]) {
			continue
		}
		for n := range g.Answers[m].Suites {
			suite := &g.Answers[m].Suites[n]
			if suite.Failure != "" {
				continue
			}
			for i := range suite.Tests {
				t := &suite.Tests[i]
				if t.Status != events.StatusKept || !t.Verdict.Failed() {
					continue
				}
				k := key{t.Call, t.Expected}
				if _, ok := at[k]; !ok {
					at[k] = len(deltas)
					deltas = append(deltas, events.BookDelta{Call: t.Call, Expected: t.Expected})
				}
				deltas[at[k]].Change++
			}
		}
	}
	return deltas
}

func counts(a *events.ExecutedAnswer) bool { return a.Loads && a.Failure == "" }
