package experiment

import (
	"context"

	"codea1/consumers/dashboard"
	"codea1/events"
)

// recordTypes are the events that the results of a run follow from.
var recordTypes = []events.Type{
	events.TypeRunStarted, events.TypeRunFinished, events.TypeGroupRewarded, events.TypeGroupDropped, events.TypePolicyUpdated,
	events.TypeEvalScored, events.TypeCodeSampled, events.TypeTestsSampled,
}

// ReadRecord returns the outcome in the log of a run; nil without a log.
func ReadRecord(ctx context.Context, host Host, dir string) (*Record, error) {
	r := &Record{State: dashboard.NewState()}
	found, err := host.Visit(ctx, dir, recordTypes, func(e *events.Event, compacted int64) {
		r.Tokens += compacted + sampledTokens(e.Payload)
		r.Kept += keptTests(e.Payload)
		if started, ok := e.Payload.(*events.RunStarted); ok {
			r.Elapsed += r.Last.Sub(r.Started)
			r.Inputs = Inputs{Problems: started.ProblemsSHA256, Heldout: started.HeldoutSHA256, Code: started.Code.SHA256, Test: started.Test.SHA256}
		}
		r.Apply(e)
	})
	if err != nil || !found {
		return nil, err
	}
	r.Elapsed += r.Last.Sub(r.Started)
	return r, nil
}

// sampledTokens returns the tokens of the completions of an event.
func sampledTokens(payload events.Payload) int64 {
	n := 0
	switch p := payload.(type) {
	case *events.CodeSampled:
		for i := range p.Answers {
			n += len(p.Answers[i].Tokens)
		}
	case *events.TestsSampled:
		for i := range p.Suites {
			for j := range p.Suites[i] {
				n += len(p.Suites[i][j].Tokens)
			}
		}
	}
	return int64(n)
}

// keptTests returns the kept tests of a rewarded group.
func keptTests(payload events.Payload) int64 {
	n := 0
	if g, ok := payload.(*events.GroupRewarded); ok {
		for _, suites := range g.Test {
			for i := range suites {
				n += suites[i].Valid
			}
		}
	}
	return int64(n)
}
