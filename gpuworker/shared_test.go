package gpuworker

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"codea1/events"
)

// A shared model is trained on the answers and on the chosen suites of each group in
// one mini-batch, in slot order, and waits for both.
func TestSharedModelIsTrainedOnBothRoles(t *testing.T) {
	c := newCollector(events.RoleCode, 2, 0)
	c.shared = true
	completions := func(tokens ...int32) (out []events.Completion) {
		for _, token := range tokens {
			out = append(out, events.Completion{Tokens: events.Int32s{token}, LogProbs: events.Float32s{-1}})
		}
		return out
	}
	apply := func(group string, payload events.Payload) {
		t.Helper()
		if err := c.apply(group, payload, events.Start); err != nil {
			t.Fatal(err)
		}
	}
	for _, slot := range []int32{1, 0} {
		plan := events.Plan{Purpose: events.PurposeTrain, Step: 1, Slot: int(slot), Groups: 2, Answers: 2, Suites: 2, Tests: 1, Temperature: 1}
		group, base := plan.GroupID(), 100*slot
		apply(group, &events.CodeSampled{Posed: events.ProblemPosed{Plan: plan}, Prompt: events.Int32s{base + 1}, Answers: completions(base+10, base+11)})
		apply(group, &events.GroupRewarded{
			Plan: plan, TopVar: 1, Code: []events.AnswerReward{{Reward: 1, Advantage: 1}, {Reward: 0, Advantage: -1}},
			Test: [][]events.SuiteReward{{{}, {}}, {{Reward: 0.5, Advantage: 2}, {Reward: 0.5, Masked: true}}},
		})
		if _, ok := c.next(); ok || c.groups[group].settled {
			t.Fatalf("%s is trained on before its suites are read", group)
		}
		apply(group, &events.TestsSampled{
			Posed: events.ProblemPosed{Plan: plan}, Prompts: []events.Int32s{{base + 2}, {base + 3}},
			Suites: [][]events.Completion{completions(base+20, base+21), completions(base+30, base+31)},
		})
	}
	step, ok := c.next()
	if !ok {
		t.Fatal("the step is not complete")
	}
	l := newLesson(events.RoleCode, step, 2, 0)
	if len(l.batches) != 1 {
		t.Fatalf("%d mini-batches", len(l.batches))
	}
	var got []string
	for _, s := range l.batches[0].all() {
		got = append(got, fmt.Sprintf("%d>%d=%v", s.Prompt[0], s.Tokens[0], s.Advantage))
	}
	const want = "1>10=1 1>11=-1 3>30=2 101>110=1 101>111=-1 103>130=2"
	if strings.Join(got, " ") != want {
		t.Errorf("have %s, want %s", strings.Join(got, " "), want)
	}
	if l.rewards != 3 || l.sequences != 6 { // (1 + 0 + 0.5) / 3 in each group
		t.Errorf("rewards %v of %d sequences", l.rewards, l.sequences)
	}
	// A version that is too old in one role is too old.
	step.groups[0].suites.version = -1
	if l = newLesson(events.RoleCode, step, 2, 0); !slices.Equal(l.dropped, []string{"s000001-q0000"}) {
		t.Errorf("dropped %v", l.dropped)
	}
}

// The blind prompt does not show the answer, in either style; a template of the user
// takes its place.
func TestBlindPrompt(t *testing.T) {
	fields := TestFields(&sumProblem, "def total(xs):\n    return 41", 3, nil)
	for flags, want := range map[PromptFlags]bool{
		{PromptStyle: StylePlain}: false, {PromptStyle: StylePaper}: false, {PromptStyle: StylePlain, TestPrompt: "{{.Question}}{{.Code}}"}: true,
	} {
		prompt, err := flags.BlindPrompt()
		if err != nil {
			t.Fatal(err)
		}
		messages, err := prompt.Write(fields)
		if err != nil || strings.Contains(messages[0].Content, "return 41") != want || !strings.Contains(messages[0].Content, "Return the sum of a list.") {
			t.Errorf("%+v: %v, %v", flags, messages, err)
		}
		solve, err := flags.Prompt(events.RoleCode)
		if err != nil {
			t.Fatal(err)
		}
		if other, err := solve.Write(CodeFields(&sumProblem)); err != nil || other[0].Content == messages[0].Content {
			t.Errorf("%+v: both roles have the same prompt, %v", flags, err)
		}
	}
}
