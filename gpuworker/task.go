package gpuworker

import (
	"fmt"

	"codea1/events"
)

// task describes the rollout of one group: the prompts for the model and the
// output event that its completions give. It does no I/O.
type task struct {
	plan     *events.Plan
	group    string
	least    int // oldest policy version that may sample the group
	params   SamplingParams
	prompts  [][]Message // one for role code, one per answer for role test; none if the group needs no completion
	perCount int         // completions per prompt
	// payload makes the payload of the output event. prompts and completions
	// have the order of the task's prompts.
	payload func(version int, prompts [][]int32, completions [][]events.Completion) events.Payload
}

// seeds returns the seeds for the completions of prompt i.
func (t *task) seeds(role events.Role, i int) []uint64 {
	seeds := make([]uint64, t.perCount)
	for j := range seeds {
		if role == events.RoleCode {
			seeds[j] = SampleSeed(t.plan, t.group, role, j, 0)
		} else {
			seeds[j] = SampleSeed(t.plan, t.group, role, i, j)
		}
	}
	return seeds
}

func (r *Rollout) newTask(e *events.Event) (*task, error) {
	if e.Type != r.Consumes() {
		return nil, fmt.Errorf("rollout of role %s: event %s is a %s", r.config.Role, e.ID, e.Type)
	}
	var t *task
	switch p := e.Payload.(type) {
	case *events.ProblemPosed:
		t = r.codeTask(e.Group, p)
	case *events.CodeSampled:
		t = r.testTask(e.Group, p)
	}
	if len(t.prompts) > 0 && t.params.MaxTokens < 1 {
		return nil, fmt.Errorf("rollout of %s: the plan allows the %s role no tokens", e.Group, r.config.Role)
	}
	return t, nil
}

func (r *Rollout) codeTask(group string, posed *events.ProblemPosed) *task {
	plan := &posed.Plan
	t := &task{plan: plan, group: group, least: plan.CodeVersion, params: r.params(plan.Temperature, plan.CodeTokens)}
	if len(posed.Given) > 0 {
		t.payload = func(version int, _ [][]int32, _ [][]events.Completion) events.Payload {
			return &events.CodeSampled{Posed: *posed, Version: version, Answers: givenAnswers(posed.Given)}
		}
		return t
	}
	t.prompts = [][]Message{CodePrompt(r.config.Style, &posed.Problem)}
	t.perCount = plan.Answers
	t.payload = func(version int, prompts [][]int32, completions [][]events.Completion) events.Payload {
		return &events.CodeSampled{Posed: *posed, Version: version, Prompt: prompts[0], Answers: completions[0]}
	}
	return t
}

// givenAnswers formats programs as completions, so that later stages extract
// them in the same way as sampled answers.
func givenAnswers(programs []string) []events.Completion {
	answers := make([]events.Completion, len(programs))
	for i, program := range programs {
		answers[i] = events.Completion{Text: "```python\n" + program + "\n```", Finish: events.FinishGiven}
	}
	return answers
}

func (r *Rollout) testTask(group string, sampled *events.CodeSampled) *task {
	posed := &sampled.Posed
	plan := &posed.Plan
	codes := make([]string, plan.Answers)
	for i := range codes {
		codes[i] = events.ExtractCode(sampled.Answers[i].Text)
	}
	t := &task{plan: plan, group: group, least: plan.TestVersion, params: r.params(plan.Temperature, plan.TestTokens), perCount: plan.Suites}
	if plan.Suites > 0 {
		for _, code := range codes {
			t.prompts = append(t.prompts, TestPrompt(r.config.Style, &posed.Problem, code, plan.Tests))
		}
	}
	t.payload = func(version int, prompts [][]int32, completions [][]events.Completion) events.Payload {
		out := &events.TestsSampled{
			Posed: *posed, CodeVersion: sampled.Version, Version: version, Codes: codes,
			Prompts: make([]events.Int32s, plan.Answers), Suites: make([][]events.Completion, plan.Answers),
		}
		for i := range prompts {
			out.Prompts[i], out.Suites[i] = prompts[i], completions[i]
		}
		return out
	}
	return t
}

func (r *Rollout) params(temperature float64, maxTokens int) SamplingParams {
	return SamplingParams{Temperature: temperature, TopP: r.config.TopP, TopK: r.config.TopK, MaxTokens: maxTokens}
}
