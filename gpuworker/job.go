package gpuworker

import (
	"fmt"

	"codea1/events"
)

// job is the rollout of one group. newJob derives the requests from the input
// event, Handle sets either output or err.
type job struct {
	input    *events.Event
	plan     *events.Plan
	least    int // oldest policy version that may sample the group
	params   SamplingParams
	messages [][]Message // prompts: one for role code, one per answer for role test; none if the group needs no completion
	perCount int         // completions per prompt
	// payload makes the payload of the output event from the completions of each
	// prompt.
	payload func(version int, completions [][]events.Completion) events.Payload

	prompts  [][]int32       // the encoded messages
	requests []SampleRequest // for the completions of each prompt, or for those of the next round
	output   *events.Event
	err      error

	rounds  int     // of suites that are written in rounds; else 0
	talks   []*talk // those suites
	version int     // that samples them
}

func (j *job) settled() bool { return j.output != nil || j.err != nil }

// seeds returns the seeds for the completions of prompt i.
func (j *job) seeds(role events.Role, i int) []uint64 {
	seeds := make([]uint64, j.perCount)
	for k := range seeds {
		if role == events.RoleCode {
			seeds[k] = SampleSeed(j.plan, j.input.Group, role, k, 0)
		} else {
			seeds[k] = SampleSeed(j.plan, j.input.Group, role, i, k)
		}
	}
	return seeds
}

// newJob makes the job of an event. It settles a group that needs no completion.
func (r *Rollout) newJob(e *events.Event) *job {
	j := &job{input: e}
	if e.Type != r.Consumes() && (r.config.Role != events.RoleTest || e.Type != events.TypeCodeJudged) {
		j.err = fmt.Errorf("rollout of role %s: event %s is a %s", r.config.Role, e.ID, e.Type)
		return j
	}
	switch p := e.Payload.(type) {
	case *events.ProblemPosed:
		r.prepareAnswers(j, p)
	case *events.CodeSampled:
		r.prepareSuites(j, &events.CodeJudged{Posed: p.Posed, Version: p.Version, Codes: p.Codes()})
	case *events.CodeJudged:
		r.prepareSuites(j, p)
	}
	switch {
	case j.err != nil:
	case len(j.messages) == 0:
		// No model is called, so the version is the requested one.
		r.finish(j, j.least, nil)
	case j.params.MaxTokens < 1:
		j.err = fmt.Errorf("rollout of %s: the plan allows the %s role no tokens", e.Group, r.config.Role)
	}
	return j
}

func (r *Rollout) prepareAnswers(j *job, posed *events.ProblemPosed) {
	plan := &posed.Plan
	j.plan, j.least, j.params, j.perCount = plan, plan.CodeVersion, r.params(plan, plan.CodeTokens), plan.Answers
	if len(posed.Given) == 0 {
		r.ask(j, CodeFields(&posed.Problem))
	}
	j.payload = func(version int, completions [][]events.Completion) events.Payload {
		out := &events.CodeSampled{Posed: *posed, Version: version}
		if len(posed.Given) > 0 {
			out.Answers = givenAnswers(posed.Given)
		} else {
			out.Prompt, out.Answers = j.prompts[0], completions[0]
		}
		return out
	}
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

func (r *Rollout) prepareSuites(j *job, answers *events.CodeJudged) {
	posed := &answers.Posed
	plan := &posed.Plan
	j.plan, j.least, j.params, j.perCount = plan, plan.TestVersion, r.params(plan, plan.TestTokens), plan.Suites
	wanted := plan.Tests
	if plan.Rounds {
		j.rounds, wanted = plan.Tests, 1
	}
	for _, code := range answers.Codes {
		if plan.Suites > 0 {
			r.ask(j, TestFields(&posed.Problem, code, wanted, posed.Historical))
		}
	}
	j.payload = func(version int, completions [][]events.Completion) events.Payload {
		out := &events.TestsSampled{
			Posed: *posed, CodeVersion: answers.Version, Version: version, Codes: answers.Codes,
			Prompts: make([]events.Int32s, plan.Answers), Suites: make([][]events.Completion, plan.Answers), Judged: answers.Judged,
		}
		for i := range completions {
			out.Prompts[i], out.Suites[i] = j.prompts[i], completions[i]
		}
		return out
	}
}

// ask adds a prompt to a job. It settles the job with an error if the prompt cannot be
// written.
func (r *Rollout) ask(j *job, fields PromptFields) {
	messages, err := r.config.Prompt.Write(fields)
	if err != nil {
		j.err = r.groupError(j, err)
	}
	j.messages = append(j.messages, messages)
}

func (r *Rollout) params(plan *events.Plan, maxTokens int) SamplingParams {
	return SamplingParams{Temperature: plan.Temperature, TopP: r.config.TopP, TopK: r.config.TopK, MaxTokens: maxTokens}
}
