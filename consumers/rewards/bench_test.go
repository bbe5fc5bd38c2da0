package rewards

import (
	"fmt"
	"testing"

	"codea1/events"
)

// BenchmarkScore rewards a group of the paper's size: 8 answers, 8 suites of 8
// tests each, 8 historical tests.
func BenchmarkScore(b *testing.B) {
	g := &events.CodeExecuted{ProblemID: "p"}
	for i := range 8 {
		g.Historical = append(g.Historical, events.HistoricalTest{Call: fmt.Sprintf("f(%d)", i), Expected: "1", Count: 1})
	}
	for m := range 8 {
		a := events.ExecutedAnswer{Loads: true}
		for i := range 8 {
			a.Historical = append(a.Historical, []events.Verdict{pass, fail}[(m+i)%2])
		}
		for n := range 8 {
			s := events.ExecutedSuite{Chars: 400}
			for i := range 8 {
				test := kept([]events.Verdict{pass, pass, fail}[(m+n+i)%3])
				test.Call = fmt.Sprintf("f(%d)", n*8+i)
				s.Tests = append(s.Tests, test)
			}
			a.Suites = append(a.Suites, s)
		}
		g.Answers = append(g.Answers, a)
	}
	g.Plan = planFor(g, 8)
	for _, recipe := range []Formula{A1(DefaultAlpha), SelfPlay(DefaultAlpha), PaperFormula()} {
		b.Run(recipe.Name(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Score(recipe, g); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
