package gpuworker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"codea1/events"
	"codea1/events/stage"
)

// Rollout samples the completions of one role for a group: answers for a posed
// problem, or suites for sampled answers. Handle is the handler of a stage.
type Rollout struct {
	config RolloutConfig
}

// NewRollout returns the rollout of config.Role.
func NewRollout(config RolloutConfig) (*Rollout, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	return &Rollout{config: config}, nil
}

// Consumes returns the type of Handle's input events: problem.posed for role
// code, code.sampled for role test. In a run with a judge, code.judged takes its place.
func (r *Rollout) Consumes() events.Type { return events.RolloutStage(r.config.Role).Consumes[0] }

// Makes returns the type of Handle's output events: code.sampled for role code,
// tests.sampled for role test.
func (r *Rollout) Makes() events.Type { return events.RolloutStage(r.config.Role).Makes[0] }

// Handle samples a batch of groups with as few calls of the engine as possible.
// The completions depend on the loaded weights, so a repeated call can return
// others: the stage needs an outbox (events/outbox) before Handle.
//
// Handle snoozes a group if its policy version is not loaded yet and samples the
// others. It drops a group if its prompt is too long. It returns every other
// failure, and the stage retries.
func (r *Rollout) Handle(ctx context.Context, batch []*events.Event) []stage.Result {
	jobs := make([]*job, len(batch))
	for i, e := range batch {
		jobs[i] = r.newJob(e)
	}
	r.sampleReady(ctx, jobs)
	r.awaitPolicy(ctx, jobs)
	r.sampleReady(ctx, jobs)

	results := make([]stage.Result, len(jobs))
	for i, j := range jobs {
		switch {
		case j.err != nil:
			results[i].Err = j.err
		case j.output != nil:
			results[i].Events = []*events.Event{j.output}
		case ctx.Err() != nil:
			results[i].Err = ctx.Err()
		default:
			results[i].Err = stage.Snooze(r.config.SnoozeFor)
		}
	}
	return results
}

// sampleReady samples every job that the loaded policy version allows. It
// samples jobs with the same parameters in one call.
func (r *Rollout) sampleReady(ctx context.Context, jobs []*job) {
	version := r.config.Policy.Version()
	var order []SamplingParams
	ready := map[SamplingParams][]*job{}
	for _, j := range jobs {
		if j.settled() || j.least > version || !r.encode(ctx, j) {
			continue
		}
		params := j.params
		if ready[params] == nil {
			order = append(order, params)
		}
		ready[params] = append(ready[params], j)
	}
	for _, params := range order {
		r.sample(ctx, ready[params])
	}
}

// awaitPolicy waits up to PolicyWait for the oldest version that the batch
// needs. It does not wait if a group of the batch is settled, because that
// group's result must not be delayed.
func (r *Rollout) awaitPolicy(ctx context.Context, jobs []*job) {
	least := math.MaxInt
	for _, j := range jobs {
		if j.settled() {
			return
		}
		least = min(least, j.least)
	}
	ctx, cancel := context.WithTimeout(ctx, r.config.PolicyWait)
	defer cancel()
	// The error does not matter: Handle reads the version next.
	_ = r.config.Policy.WaitVersion(ctx, least)
}

// encode renders a job's prompts. It returns false if it settled the job with an
// error.
func (r *Rollout) encode(ctx context.Context, j *job) bool {
	j.prompts = make([][]int32, len(j.messages))
	for i, messages := range j.messages {
		tokens, err := r.config.Policy.EncodePrompt(ctx, messages)
		if err != nil {
			j.err = r.groupError(j, err)
			return false
		}
		if len(tokens) > r.config.MaxPromptTokens {
			j.err = stage.Drop(events.DropTooLarge, fmt.Sprintf("prompt of %d tokens, limit %d", len(tokens), r.config.MaxPromptTokens))
			return false
		}
		j.prompts[i] = tokens
	}
	j.requests = make([]SampleRequest, len(j.prompts))
	for i := range j.prompts {
		j.requests[i] = SampleRequest{Prompt: j.prompts[i], Messages: j.messages[i], Seeds: j.seeds(r.config.Role, i)}
	}
	return true
}

// sample samples jobs with the same parameters in one call for each round. If the call
// fails, sample retries each job separately, so that one group cannot fail the others.
func (r *Rollout) sample(ctx context.Context, jobs []*job) {
	var requests []SampleRequest
	for _, j := range jobs {
		requests = append(requests, j.requests...)
	}
	completions, version, err := r.config.Policy.Sample(ctx, requests, jobs[0].params)
	switch {
	case err == nil:
		var again []*job
		for _, j := range jobs {
			n := len(j.requests)
			if j.rounds == 0 {
				r.finish(j, version, completions[:n:n])
			} else if r.converse(ctx, j, version, completions[:n:n]) {
				again = append(again, j)
			}
			completions = completions[n:]
		}
		if len(again) > 0 {
			r.sample(ctx, again)
		}
	case len(jobs) == 1 || ctx.Err() != nil:
		for _, j := range jobs {
			j.err = r.groupError(j, err)
		}
	default:
		r.config.Logger.Warn("batch failed, sampling its groups one by one", "groups", len(jobs), "error", err)
		for _, j := range jobs {
			r.sample(ctx, []*job{j})
		}
	}
}

func (r *Rollout) finish(j *job, version int, completions [][]events.Completion) {
	j.output = events.Caused(j.input, r.config.Source, time.Now(), j.payload(version, completions))
}

func (r *Rollout) groupError(j *job, err error) error {
	if errors.Is(err, ErrPromptTooLong) {
		return stage.Drop(events.DropTooLarge, err.Error())
	}
	return fmt.Errorf("rollout of %s: %w", j.input.Group, err)
}
