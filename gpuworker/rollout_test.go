package gpuworker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"codea1/events"
	"codea1/events/stage"
	"codea1/gpuworker"
	"codea1/gpuworker/tiny"
)

// policy is an engine with a version and a record of its calls.
type policy struct {
	*tiny.Engine
	fail func(requests []gpuworker.SampleRequest) error

	mu      sync.Mutex
	version int
	calls   []int // requests of each Sample
}

func (p *policy) Version() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.version
}

// WaitVersion loads every version except 9.
func (p *policy) WaitVersion(ctx context.Context, least int) error {
	if least == 9 {
		<-ctx.Done()
		return ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version = max(p.version, least)
	return nil
}

func (p *policy) EncodePrompt(_ context.Context, messages []gpuworker.Message) ([]int32, error) {
	return p.Engine.EncodePrompt(messages)
}

func (p *policy) Sample(ctx context.Context, r []gpuworker.SampleRequest, params gpuworker.SamplingParams) ([][]events.Completion, int, error) {
	p.mu.Lock()
	p.calls = append(p.calls, len(r))
	p.mu.Unlock()
	if p.fail != nil {
		if err := p.fail(r); err != nil {
			return nil, 0, err
		}
	}
	out, err := p.Engine.Sample(ctx, r, params)
	return out, p.Version(), err
}

func newPolicy() *policy { return &policy{Engine: newEngine(4)} }

func newRollout(t *testing.T, role events.Role, p gpuworker.RolloutPolicy) *gpuworker.Rollout {
	t.Helper()
	r, err := gpuworker.NewRollout(gpuworker.RolloutConfig{
		Role: role, Policy: p, Source: string(role) + "-rollout", MaxPromptTokens: 200,
		PolicyWait: 10 * time.Millisecond, SnoozeFor: 70 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// pose returns the problem.posed of a slot after change.
func pose(t *testing.T, slot int, change func(*events.ProblemPosed)) *events.Event {
	t.Helper()
	p := &events.ProblemPosed{
		Plan: events.Plan{
			Purpose: events.PurposeTrain, Step: 1, Slot: slot, Groups: 100, Answers: 3, Suites: 2, Tests: 2,
			Temperature: 1, CodeTokens: 12, TestTokens: 9, Seed: 77,
		},
		Problem: events.Problem{ID: "p", Question: fmt.Sprintf("add %d to x.", slot), EntryPoint: "f", Solution: "def f(x): ..."},
	}
	if change != nil {
		change(p)
	}
	return encoded(t, events.New("r1", p.Plan.GroupID(), "curriculum", time.Unix(1, 0), p))
}

func encoded(t *testing.T, e *events.Event) *events.Event {
	t.Helper()
	if _, err := events.Encode(e); err != nil {
		t.Fatal(err)
	}
	return e
}

// only returns the one event of a result.
func only(t *testing.T, r stage.Result) *events.Event {
	t.Helper()
	if r.Err != nil || len(r.Events) != 1 {
		t.Fatalf("%d events, %v", len(r.Events), r.Err)
	}
	return encoded(t, r.Events[0])
}

func codeOf(t *testing.T, r stage.Result) *events.CodeSampled {
	t.Helper()
	return only(t, r).Payload.(*events.CodeSampled)
}

// refused checks that a result is an error that contains needs.
func refused(t *testing.T, r stage.Result, needs string) {
	t.Helper()
	if r.Err == nil || !strings.Contains(r.Err.Error(), needs) || len(r.Events) > 0 {
		t.Errorf("have %d events and error %v, want %q", len(r.Events), r.Err, needs)
	}
}

func TestRolloutSamplesABatchInOneCall(t *testing.T) {
	p := newPolicy()
	r := newRollout(t, events.RoleCode, p)
	results := r.Handle(t.Context(), []*events.Event{pose(t, 0, nil), pose(t, 1, nil), pose(t, 2, nil)})
	if d := cmp.Diff([]int{3}, p.calls); d != "" {
		t.Errorf("calls of the engine: %s", d)
	}
	for slot, result := range results {
		got := only(t, result)
		if err := got.Payload.Validate(); err != nil {
			t.Error(err)
		}
		// Another worker samples the same completions for the group.
		single := newRollout(t, events.RoleCode, newPolicy()).Handle(t.Context(), []*events.Event{pose(t, slot, nil)})
		if d := cmp.Diff(only(t, single[0]), got, cmpopts.IgnoreFields(events.Envelope{}, "Time"), cmpopts.IgnoreUnexported(events.Event{})); d != "" {
			t.Errorf("slot %d depends on its batch: %s", slot, d)
		}
	}
	first := codeOf(t, results[0])
	if cmp.Equal(first.Answers[0], first.Answers[1]) && cmp.Equal(first.Answers[1], first.Answers[2]) {
		t.Error("the answers of a group share a seed")
	}
}

// plainPrompt returns the prompt that a rollout writes without a template of the user.
func plainPrompt(t *testing.T, role events.Role, fields gpuworker.PromptFields) []gpuworker.Message {
	t.Helper()
	prompt, err := (&gpuworker.PromptFlags{PromptStyle: gpuworker.StylePlain}).Prompt(role)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := prompt.Write(fields)
	if err != nil {
		t.Fatal(err)
	}
	return messages
}

func TestRolloutOfTestsShowsTheProgram(t *testing.T) {
	p := newPolicy()
	code := only(t, newRollout(t, events.RoleCode, p).Handle(t.Context(), []*events.Event{
		pose(t, 0, func(p *events.ProblemPosed) { p.Given = []string{"def f(x): return 1", "bad", "def f(x): return 3"} }),
	})[0])
	if len(p.calls) != 0 {
		t.Error("given answers were sampled")
	}
	given := code.Payload.(*events.CodeSampled)
	if c := given.Answers[1]; c.Text != "```python\nbad\n```" || c.Finish != events.FinishGiven || len(given.Prompt) != 0 {
		t.Errorf("%+v", given)
	}

	got := only(t, newRollout(t, events.RoleTest, p).Handle(t.Context(), []*events.Event{code})[0]).Payload.(*events.TestsSampled)
	if d := cmp.Diff([]string{"def f(x): return 1\n", "bad\n", "def f(x): return 3\n"}, got.Codes); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]int{3}, p.calls); d != "" {
		t.Errorf("calls of the engine: %s", d)
	}
	for i := range got.Suites {
		want, err := p.Engine.EncodePrompt(plainPrompt(t, events.RoleTest, gpuworker.TestFields(&given.Posed.Problem, got.Codes[i], 2, nil)))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(events.Int32s(want), got.Prompts[i]); d != "" {
			t.Errorf("prompt %d: %s", i, d)
		}
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
}

// In a run with a judge, suites follow from judged answers: with the same seeds, and with the
// judgements for execution.
func TestRolloutOfTestsForJudgedAnswers(t *testing.T) {
	p := newPolicy()
	code := only(t, newRollout(t, events.RoleCode, p).Handle(t.Context(), []*events.Event{pose(t, 0, nil)})[0])
	given := code.Payload.(*events.CodeSampled)
	judged := &events.Judged{Judges: "findings", Engine: "test 1", Lines: 1, Answers: make([]events.Judgement, len(given.Answers))}
	posed := given.Posed
	posed.Plan.Judges = judged.Judges
	answers := events.Caused(code, "judge-0", code.Time, &events.CodeJudged{Posed: posed, Version: given.Version, Codes: given.Codes(), Judged: judged})
	if _, err := events.Encode(answers); err != nil {
		t.Fatal(err)
	}
	tests := newRollout(t, events.RoleTest, p)
	want := only(t, tests.Handle(t.Context(), []*events.Event{code})[0]).Payload.(*events.TestsSampled)
	got := only(t, tests.Handle(t.Context(), []*events.Event{answers})[0])
	want.Posed, want.Judged = posed, judged
	if d := cmp.Diff(want, got.Payload); d != "" || got.CausationID != answers.ID || want.Validate() != nil || len(want.Suites[0]) == 0 {
		t.Errorf("-from code.sampled +from code.judged:\n%s", d)
	}
	if r := newRollout(t, events.RoleCode, p).Handle(t.Context(), []*events.Event{answers})[0]; r.Err == nil {
		t.Error("the Code LLM has answered judged answers")
	}
}

// A template of the user writes the prompts. A group for which it fails does not
// fail the others.
func TestRolloutWithATemplate(t *testing.T) {
	flags := gpuworker.PromptFlags{TestPrompt: "{{.Question}}{{range .History}} {{.Call}}{{if gt .Count 5}}{{index $.EntryPoint 9}}{{end}}{{end}} {{.Code}}"}
	prompt, err := flags.Prompt(events.RoleTest)
	if err != nil {
		t.Fatal(err)
	}
	p := newPolicy()
	r, err := gpuworker.NewRollout(gpuworker.RolloutConfig{Role: events.RoleTest, Policy: p, Source: "test-rollout", Prompt: prompt})
	if err != nil {
		t.Fatal(err)
	}
	sampled := func(slot, count int) *events.Event {
		return only(t, newRollout(t, events.RoleCode, p).Handle(t.Context(), []*events.Event{
			pose(t, slot, func(p *events.ProblemPosed) {
				p.Given = []string{"a", "b", "c"}
				p.Historical = []events.HistoricalTest{{Call: "f(1)", Expected: "2", Count: count}}
			}),
		})[0])
	}
	results := r.Handle(t.Context(), []*events.Event{sampled(0, 6), sampled(1, 5)})
	refused(t, results[0], "rollout of s000001-q0000: prompt ")
	want, err := p.Engine.EncodePrompt([]gpuworker.Message{{Role: "user", Content: "add 1 to x. f(1) b"}})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(events.Int32s(want), only(t, results[1]).Payload.(*events.TestsSampled).Prompts[1]); d != "" {
		t.Error(d)
	}
}

func TestRolloutWithoutSuitesCallsNoModel(t *testing.T) {
	p := newPolicy()
	posed := pose(t, 0, func(p *events.ProblemPosed) { p.Plan.Suites, p.Plan.TestVersion = 0, 9 })
	code := only(t, newRollout(t, events.RoleCode, p).Handle(t.Context(), []*events.Event{posed})[0])
	got := only(t, newRollout(t, events.RoleTest, p).Handle(t.Context(), []*events.Event{code})[0]).Payload.(*events.TestsSampled)
	if len(p.calls) != 1 || got.Version != 9 || len(got.Codes) != 3 || len(got.Suites[2]) != 0 {
		t.Errorf("calls %v, %+v", p.calls, got)
	}
}

func TestRolloutWaitsForItsPolicyVersion(t *testing.T) {
	needs := func(slot, version int) *events.Event {
		return pose(t, slot, func(p *events.ProblemPosed) { p.Plan.CodeVersion = version })
	}
	p := newPolicy()
	r := newRollout(t, events.RoleCode, p)

	// One group can be sampled: the other does not delay it.
	results := r.Handle(t.Context(), []*events.Event{needs(0, 9), needs(1, 0)})
	refused(t, results[0], "snooze for 70ms")
	if v := codeOf(t, results[1]).Version; v != 0 {
		t.Errorf("sampled from version %d", v)
	}
	// No group can be sampled: Handle waits, and then samples one.
	results = r.Handle(t.Context(), []*events.Event{needs(0, 9), needs(2, 3)})
	refused(t, results[0], "snooze for 70ms")
	if v := codeOf(t, results[1]).Version; v != 3 {
		t.Errorf("sampled from version %d", v)
	}
	// The wait is bounded.
	refused(t, r.Handle(t.Context(), []*events.Event{needs(0, 9)})[0], "snooze for 70ms")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Handle(ctx, []*events.Event{needs(0, 9)})[0].Err; !errors.Is(err, context.Canceled) {
		t.Errorf("after its context ended: %v", err)
	}
}

func TestRolloutKeepsOneGroupFromFailingOthers(t *testing.T) {
	p := newPolicy()
	poison, err := p.Engine.EncodePrompt(plainPrompt(t, events.RoleCode, gpuworker.PromptFields{Question: "add 1 to x."}))
	if err != nil {
		t.Fatal(err)
	}
	var fault error
	p.fail = func(requests []gpuworker.SampleRequest) error {
		for _, r := range requests {
			if cmp.Equal(r.Prompt, poison) {
				return fault
			}
		}
		return nil
	}
	long := pose(t, 3, func(p *events.ProblemPosed) { p.Problem.Question = strings.Repeat("long ", 50) })
	none := pose(t, 4, func(p *events.ProblemPosed) { p.Plan.CodeTokens = 0 })
	for _, c := range []struct {
		fault error
		needs string
	}{
		{errors.New("out of memory"), "rollout of s000001-q0001: out of memory"},
		{fmt.Errorf("%w: 300 tokens", gpuworker.ErrPromptTooLong), "drop: too_large: prompt is longer"},
	} {
		fault = c.fault
		r := newRollout(t, events.RoleCode, p)
		results := r.Handle(t.Context(), []*events.Event{pose(t, 0, nil), pose(t, 1, nil), pose(t, 2, nil), long, none})
		only(t, results[0])
		refused(t, results[1], c.needs)
		only(t, results[2])
		refused(t, results[3], "drop: too_large: prompt of 269 tokens, limit 200")
		refused(t, results[4], "no tokens")
	}
	refused(t, newRollout(t, events.RoleTest, p).Handle(t.Context(), []*events.Event{long})[0], "is a problem.posed")
}
