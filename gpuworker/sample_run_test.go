package gpuworker

import (
	"fmt"
	"math/rand/v2"
	"time"

	"codea1/events"
)

// SampleRun makes the events of a run, as the stages before a trainer do. Some
// of its groups are dropped, some answers and suites are masked, and some groups
// have no answer chosen for the Test LLM.
type SampleRun struct {
	Name    string
	Steps   int
	Groups  int // per step
	Answers int
	Suites  int
	Lag     int // staleness of the samples; step s has at most s-1
	Seed    uint64
}

// sampleVocabulary is the number of different token ids in a SampleRun.
const sampleVocabulary = 40

var sampleTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Messages returns the events of every group of the run, in the order a
// synchronous schedule makes them.
func (r SampleRun) Messages() []events.Message {
	var out []events.Message
	for step := 1; step <= r.Steps; step++ {
		for slot := range r.Groups {
			out = append(out, r.Group(step, slot)...)
		}
	}
	return out
}

// Shuffled returns the messages of Messages in another order, which keeps that
// of each group.
func (r SampleRun) Shuffled(seed uint64) []events.Message {
	rng := rand.New(rand.NewPCG(seed, 3))
	var open [][]events.Message
	for step := 1; step <= r.Steps; step++ {
		for slot := range r.Groups {
			open = append(open, r.Group(step, slot))
		}
	}
	var out []events.Message
	for len(open) > 0 {
		i := rng.IntN(len(open))
		out = append(out, open[i][0])
		if open[i] = open[i][1:]; len(open[i]) == 0 {
			open = append(open[:i], open[i+1:]...)
		}
	}
	return out
}

// Group returns the events of one group, from problem.posed to group.rewarded
// or group.dropped.
func (r SampleRun) Group(step, slot int) []events.Message {
	rng := rand.New(rand.NewPCG(r.Seed, uint64(step)<<20|uint64(slot)))
	plan := events.Plan{
		Purpose: events.PurposeTrain, Step: step, Slot: slot, Groups: r.Groups,
		CodeVersion: max(0, step-1-r.Lag), TestVersion: max(0, step-1-r.Lag),
		Answers: r.Answers, Suites: r.Suites, Tests: 2, Temperature: 1, CodeTokens: 8, TestTokens: 8, Seed: r.Seed,
	}
	posed := events.New(r.Name, plan.GroupID(), "sample-0", sampleTime, &events.ProblemPosed{Plan: plan, Problem: events.Problem{
		ID: fmt.Sprintf("p%d", slot), Question: "Return x.", EntryPoint: "f", Solution: "def f(x):\n    return x\n",
	}})
	out := []events.Message{sampleEncode(posed)}
	outcome := rng.IntN(10)
	if outcome == 0 {
		return append(out, sampleEncode(sampleDropped(posed, &plan)))
	}

	code := sampleCaused(posed, r.codeSampled(rng, posed.Payload.(*events.ProblemPosed)))
	tests := sampleCaused(code, r.testsSampled(rng, code.Payload.(*events.CodeSampled)))
	out = append(out, sampleEncode(code), sampleEncode(tests))
	if outcome == 1 {
		return append(out, sampleEncode(sampleDropped(tests, &plan)))
	}
	return append(out, sampleEncode(sampleCaused(tests, r.rewarded(rng, plan, outcome))))
}

func (r SampleRun) codeSampled(rng *rand.Rand, posed *events.ProblemPosed) *events.CodeSampled {
	out := &events.CodeSampled{Posed: *posed, Version: posed.Plan.CodeVersion, Prompt: drawTokens(rng, 6)}
	for range r.Answers {
		out.Answers = append(out.Answers, sampleCompletion(rng))
	}
	return out
}

func (r SampleRun) testsSampled(rng *rand.Rand, code *events.CodeSampled) *events.TestsSampled {
	out := &events.TestsSampled{Posed: code.Posed, CodeVersion: code.Version, Version: code.Posed.Plan.TestVersion}
	for range r.Answers {
		out.Codes = append(out.Codes, "def f(x):\n    return x\n")
		out.Prompts = append(out.Prompts, drawTokens(rng, 9))
		var row []events.Completion
		for range r.Suites {
			row = append(row, sampleCompletion(rng))
		}
		out.Suites = append(out.Suites, row)
	}
	return out
}

func (r SampleRun) rewarded(rng *rand.Rand, plan events.Plan, outcome int) *events.GroupRewarded {
	out := &events.GroupRewarded{
		Plan: plan, ProblemID: fmt.Sprintf("p%d", plan.Slot), CodeVersion: plan.CodeVersion, TestVersion: plan.TestVersion,
		Recipe: "a1", Alpha: 0.5, TopVar: rng.IntN(r.Answers),
	}
	if outcome == 2 {
		out.TopVar = -1
	}
	for range r.Answers {
		out.Code = append(out.Code, events.AnswerReward{Reward: rng.Float64(), Advantage: rng.NormFloat64(), Loads: true, Masked: rng.IntN(8) == 0})
		var row []events.SuiteReward
		for range r.Suites {
			row = append(row, events.SuiteReward{Reward: rng.Float64(), Advantage: rng.NormFloat64(), Masked: rng.IntN(8) == 0})
		}
		out.Test = append(out.Test, row)
	}
	return out
}

func sampleCompletion(rng *rand.Rand) events.Completion {
	c := events.Completion{Text: "text", Tokens: drawTokens(rng, 1+rng.IntN(7)), Finish: events.FinishStop}
	for range c.Tokens {
		c.LogProbs = append(c.LogProbs, -4*rng.Float32())
	}
	return c
}

func drawTokens(rng *rand.Rand, n int) events.Int32s {
	out := make(events.Int32s, n)
	for i := range out {
		out[i] = rng.Int32N(sampleVocabulary)
	}
	return out
}

func sampleDropped(cause *events.Event, plan *events.Plan) *events.Event {
	return sampleCaused(cause, &events.GroupDropped{
		Purpose: plan.Purpose, Step: plan.Step, Slot: plan.Slot, Groups: plan.Groups, Stage: "sample", Reason: events.DropRetries,
	})
}

func sampleCaused(cause *events.Event, payload events.Payload) *events.Event {
	e := events.Caused(cause, "sample-0", cause.Time.Add(time.Second), payload)
	sampleEncode(e)
	return e
}

// encode sets the event's hash. The events of a SampleRun are always valid.
func sampleEncode(e *events.Event) events.Message {
	m, err := events.Encode(e)
	if err != nil {
		panic(err)
	}
	return m
}
