package rewards

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"codea1/events"
)

// TestStories scores groups written as text. testdata/stories describes the
// notation; `go test -rewrite` rewrites the results.
func TestStories(t *testing.T) {
	datadriven.RunTest(t, "testdata/stories", func(t *testing.T, d *datadriven.TestData) string {
		recipe, alpha, k := NameA1, DefaultAlpha, 4
		for _, arg := range d.CmdArgs {
			var err error
			switch arg.Key {
			case "recipe":
				recipe = arg.Vals[0]
			case "alpha":
				alpha, err = strconv.ParseFloat(arg.Vals[0], 64)
			case "k":
				k, err = strconv.Atoi(arg.Vals[0])
			default:
				d.Fatalf(t, "unknown argument %s", arg.Key)
			}
			if err != nil {
				d.Fatalf(t, "%s: %v", arg.Key, err)
			}
		}
		r, err := New(recipe, alpha)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		group, err := parseGroup(d.Input, k)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		rewarded, err := Score(r, group)
		if err != nil {
			return err.Error() + "\n"
		}
		if err := rewarded.Validate(); err != nil {
			d.Fatalf(t, "the rewarded group is not valid: %v", err)
		}
		return tell(rewarded)
	})
}

// parseGroup reads the notation of testdata/stories.
func parseGroup(text string, k int) (*events.CodeExecuted, error) {
	g := &events.CodeExecuted{ProblemID: "p"}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		switch fields[0] {
		case "historical":
			for _, f := range fields[1:] {
				call, expected, _ := strings.Cut(f, "=")
				g.Historical = append(g.Historical, events.HistoricalTest{Call: call, Expected: expected, Count: 1})
			}
		case "answer":
			a, err := parseAnswer(fields[1:])
			if err != nil {
				return nil, err
			}
			g.Answers = append(g.Answers, a)
		case "suite":
			if len(g.Answers) == 0 {
				return nil, errors.New("a suite before its answer")
			}
			s, err := parseSuite(fields[1:])
			if err != nil {
				return nil, err
			}
			a := &g.Answers[len(g.Answers)-1]
			a.Suites = append(a.Suites, s)
		default:
			return nil, fmt.Errorf("unknown line %q", fields[0])
		}
	}
	g.Plan = planFor(g, k)
	return g, g.Validate()
}

func planFor(g *events.CodeExecuted, k int) events.Plan {
	p := events.Plan{Purpose: events.PurposeTrain, Step: 1, Groups: 1, Answers: len(g.Answers), Tests: k, Temperature: 1}
	for i := range g.Answers {
		p.Suites = max(p.Suites, len(g.Answers[i].Suites))
	}
	return p
}

var letters = map[rune]events.Verdict{
	'p': events.VerdictPass, 'f': events.VerdictFail, 'r': events.VerdictRaised,
	't': events.VerdictTimeout, 'n': events.VerdictNotRun,
}

func parseVerdicts(s string) (out []events.Verdict, err error) {
	for _, r := range s {
		v, ok := letters[r]
		if !ok {
			return nil, fmt.Errorf("unknown verdict %q", r)
		}
		out = append(out, v)
	}
	return out, nil
}

func parseAnswer(words []string) (events.ExecutedAnswer, error) {
	a := events.ExecutedAnswer{Loads: true}
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		var err error
		switch name {
		case "broken":
			a.Loads, a.LoadError = false, "SyntaxError"
		case "lost":
			a.Failure = "the sandbox died"
		case "historical":
			a.Historical, err = parseVerdicts(value)
		case "golden":
			var verdicts []events.Verdict
			verdicts, err = parseVerdicts(value)
			for _, v := range verdicts {
				a.Golden = append(a.Golden, events.GoldenVerdict{Verdict: v})
			}
		default:
			err = fmt.Errorf("unknown word %q", w)
		}
		if err != nil {
			return a, err
		}
	}
	return a, nil
}

func parseSuite(words []string) (events.ExecutedSuite, error) {
	s := events.ExecutedSuite{Chars: 100}
	for _, w := range words {
		test := events.ExecutedTest{Source: w, Verdict: events.VerdictNotRun}
		switch {
		case w == "lost":
			s.Failure = "the sandbox died"
			continue
		case strings.HasPrefix(w, "odd="):
			n, err := strconv.Atoi(w[len("odd="):])
			if err != nil {
				return s, err
			}
			s.Unprintable = n
			continue
		case w == string(events.StatusUnparsable), w == string(events.StatusRaised), w == string(events.StatusDuplicate):
			test.Status = events.TestStatus(w)
		default:
			body, verdict, ok := strings.Cut(w, ":")
			test.Status = events.StatusKept
			verdict, test.Wrong = strings.CutSuffix(verdict, "!")
			test.Call, test.Expected, _ = strings.Cut(body, "=")
			v, err := parseVerdicts(verdict)
			if err != nil || !ok || len(v) != 1 {
				return s, fmt.Errorf("test %q: want call=value:verdict", w)
			}
			test.Verdict = v[0]
		}
		s.Tests = append(s.Tests, test)
	}
	return s, nil
}

func tell(g *events.GroupRewarded) string {
	var b strings.Builder
	for m, a := range g.Code {
		if a.Masked {
			fmt.Fprintf(&b, "answer %d is masked\n", m)
		} else {
			fmt.Fprintf(&b, "answer %d earns %.4f, advantage %+.4f\n", m, a.Reward, a.Advantage)
		}
		for n, s := range g.Test[m] {
			if s.Masked {
				fmt.Fprintf(&b, "  suite %d is masked\n", n)
				continue
			}
			fmt.Fprintf(&b, "  suite %d earns %.4f, advantage %+.4f: valid %d invalid %d R_val %.4f; fail_new %.4f fail_hist %.4f R_adv %.4f",
				n, s.Reward, s.Advantage, s.Valid, s.Invalid, s.RVal, s.FailNew, s.FailHist, s.RAdv)
			if s.Penalty > 0 {
				fmt.Fprintf(&b, "; penalty %.4f", s.Penalty)
			}
			fmt.Fprintf(&b, "; pass_new %.4f pass_hist %.4f pass %.4f\n", s.PassNew, s.PassHist, s.Pass)
		}
	}
	if g.TopVar < 0 {
		b.WriteString("the Test LLM learns from no answer\n")
	} else {
		fmt.Fprintf(&b, "the Test LLM learns from answer %d\n", g.TopVar)
	}
	for _, d := range g.Deltas {
		fmt.Fprintf(&b, "book %+d %s=%s\n", d.Change, d.Call, d.Expected)
	}
	return b.String()
}
