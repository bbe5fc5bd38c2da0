package gpuworker_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/gpuworker"
)

// scripted answers with given texts, one for each message of the assistant in the prompt.
// A prompt has a token for each message.
type scripted struct {
	texts    []string
	versions []int // of the calls; then 0
	calls    [][]gpuworker.SampleRequest
}

func (s *scripted) Version() int                           { return 0 }
func (s *scripted) WaitVersion(context.Context, int) error { return nil }
func (s *scripted) EncodePrompt(_ context.Context, m []gpuworker.Message) ([]int32, error) {
	return make([]int32, len(m)), nil
}

func (s *scripted) Sample(_ context.Context, requests []gpuworker.SampleRequest, _ gpuworker.SamplingParams) ([][]events.Completion, int, error) {
	version := 0
	if n := len(s.calls); n < len(s.versions) {
		version = s.versions[n]
	}
	s.calls = append(s.calls, requests)
	var rows [][]events.Completion
	for _, r := range requests {
		var row []events.Completion
		for _, seed := range r.Seeds {
			text := s.texts[min((len(s.calls)-1), len(s.texts)-1)]
			row = append(row, events.Completion{Text: text, Tokens: events.Int32s{int32(seed % 1000)}, LogProbs: events.Float32s{-1}, Finish: events.FinishStop})
		}
		rows = append(rows, row)
	}
	return rows, version, nil
}

// shownIn returns the messages of a request after the first.
func shownIn(r gpuworker.SampleRequest) (texts []string) {
	for _, m := range r.Messages[1:] {
		texts = append(texts, m.Role+": "+m.Content)
	}
	return texts
}

// inRounds samples suites of three rounds about two programs for each of two groups.
func inRounds(t *testing.T, p *scripted, style gpuworker.Style, limit int) (results []error, sampled []*events.TestsSampled) {
	t.Helper()
	prompt, err := (&gpuworker.PromptFlags{PromptStyle: style}).Prompt(events.RoleTest)
	if err != nil {
		t.Fatal(err)
	}
	r, err := gpuworker.NewRollout(gpuworker.RolloutConfig{Role: events.RoleTest, Policy: p, Source: "test-rollout", Prompt: prompt, MaxPromptTokens: limit})
	if err != nil {
		t.Fatal(err)
	}
	var batch []*events.Event
	for slot := range 2 {
		posed := pose(t, slot, func(p *events.ProblemPosed) {
			p.Plan.Purpose, p.Plan.Tag, p.Plan.Answers, p.Plan.Suites, p.Plan.Tests, p.Plan.Rounds = events.PurposeEval, "t", 2, 2, 3, true
			p.Given = []string{"a", "b"}
		})
		batch = append(batch, only(t, newRollout(t, events.RoleCode, newPolicy()).Handle(t.Context(), []*events.Event{posed})[0]))
	}
	for _, result := range r.Handle(t.Context(), batch) {
		results = append(results, result.Err)
		if result.Err == nil {
			sampled = append(sampled, only(t, result).Payload.(*events.TestsSampled))
		}
	}
	return results, sampled
}

// Each round asks for one test and shows the tests before it: as turns of a chat, or as the
// begin of the suite that the response continues. All groups of a batch share the call of a
// round, and each suite has the turns that it takes to train on them.
func TestRolloutInRounds(t *testing.T) {
	const another = "user: Write another test of the same form. Its call differs from those above and makes the program run other statements and branches."
	for style, c := range map[gpuworker.Style]struct {
		texts  []string
		second []string
		third  []string
		suite  string
	}{
		gpuworker.StylePaper: {
			[]string{"Sure:\n```python\nassert f(1) == 1\nassert f(2) == 2\n```", "I cannot.", "```python\ndef test_f():\n    assert f(3)\n    x\n```"},
			[]string{"assistant: ```python\nassert f(1) == 1\n```", another},
			[]string{"assistant: ```python\nassert f(1) == 1\n```", another, "assistant: I cannot.", another},
			"```python\nassert f(1) == 1\n```\n```python\n```\n```python\ndef test_f():\n    assert f(3)\ntest_f()\ndel test_f\n```\n",
		},
		gpuworker.StylePlain: {
			[]string{"```python\nassert f(1) == 1\nassert f(2) == 2\n```", "assert f(2) == 2\nassert f(3) == 3\n```", "```"},
			[]string{"assistant: ```python\nassert f(1) == 1\n"},
			[]string{"assistant: ```python\nassert f(1) == 1\nassert f(2) == 2\n"},
			"```python\nassert f(1) == 1\n```\n```python\nassert f(2) == 2\n```\n```python\n```\n",
		},
	} {
		p := &scripted{texts: c.texts}
		results, sampled := inRounds(t, p, style, 0)
		if len(sampled) != 2 || len(p.calls) != 3 || len(p.calls[0]) != 4 || len(p.calls[1]) != 8 || len(p.calls[2]) != 8 {
			t.Fatalf("%s: %v; %d calls", style, results, len(p.calls))
		}
		for i, want := range [][]string{nil, c.second, c.third} {
			for _, r := range p.calls[i] {
				if d := cmp.Diff(want, shownIn(r)); d != "" {
					t.Errorf("%s, round %d:\n%s", style, i+1, d)
				}
			}
		}
		seeds := map[uint64]bool{}
		for _, call := range p.calls {
			for _, r := range call {
				for _, seed := range r.Seeds {
					seeds[seed] = true
				}
			}
		}
		if len(seeds) != 2*2*2*3 {
			t.Errorf("%s: %d seeds for 24 responses", style, len(seeds))
		}
		for _, s := range sampled {
			for _, row := range s.Suites {
				for _, suite := range row {
					if suite.Text != c.suite {
						t.Errorf("%s: the suite is %q, want %q", style, suite.Text, c.suite)
					}
					for i, turn := range suite.Turns {
						if turn.Text != c.texts[i] || turn.Tokens != 1 || len(turn.Prompt) != 1+len([][]string{nil, c.second, c.third}[i]) {
							t.Errorf("%s: turn %d is %+v", style, i, turn)
						}
					}
					if len(suite.Turns) != 3 || len(suite.Tokens) != 3 || len(suite.LogProbs) != 3 {
						t.Errorf("%s: %+v", style, suite)
					}
				}
			}
		}
	}
}

// A conversation that exceeds the longest prompt loses its oldest tests. A suite whose
// rounds would have several versions is sampled again.
func TestRoundsKeepTheirLimits(t *testing.T) {
	p := &scripted{texts: []string{"assert f(1)", "assert f(2)", "assert f(3)"}}
	_, sampled := inRounds(t, p, gpuworker.StylePaper, 4)
	if len(sampled) != 2 {
		t.Fatal("no suites")
	}
	if got := shownIn(p.calls[2][0]); len(got) != 2 || got[0] != "assistant: ```python\nassert f(2)\n```" {
		t.Errorf("the third round shows %q", got)
	}
	results, _ := inRounds(t, &scripted{texts: p.texts, versions: []int{0, 1}}, gpuworker.StylePaper, 0)
	for i, err := range results {
		if want := fmt.Sprintf("rollout of e-t-%04d: version 1 took the place of 0 between two rounds", i); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
