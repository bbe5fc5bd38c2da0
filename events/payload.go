package events

import (
	"maps"
	"slices"
)

// Type is the name of an event, as in the ce-type header.
type Type string

// The event types of a run, in the order in which a group meets them.
const (
	TypeRunStarted     Type = "run.started"
	TypeProblemPosed   Type = "problem.posed"
	TypeCodeSampled    Type = "code.sampled"
	TypeTestsSampled   Type = "tests.sampled"
	TypeCodeJudged     Type = "code.judged"
	TypeCodeExecuted   Type = "code.executed"
	TypeGroupRewarded  Type = "group.rewarded"
	TypeRewardShadowed Type = "reward.shadowed"
	TypeGroupDropped   Type = "group.dropped"
	TypePolicyUpdated  Type = "policy.updated"
	TypeEvalScored     Type = "eval.scored"
	TypeStageHeartbeat Type = "stage.heartbeat"
	TypeRunFinished    Type = "run.finished"
)

// Payload is the content of an event.
type Payload interface {
	// EventType returns the type of the event that carries this payload.
	EventType() Type
	// Validate checks the payload's invariants; the error names the field.
	Validate() error
}

// registry holds, for each type, the current schema version and a constructor.
var registry = map[Type]struct {
	version int
	make    func() Payload
}{
	TypeRunStarted:     {1, func() Payload { return new(RunStarted) }},
	TypeProblemPosed:   {1, func() Payload { return new(ProblemPosed) }},
	TypeCodeSampled:    {1, func() Payload { return new(CodeSampled) }},
	TypeTestsSampled:   {1, func() Payload { return new(TestsSampled) }},
	TypeCodeJudged:     {1, func() Payload { return new(CodeJudged) }},
	TypeCodeExecuted:   {1, func() Payload { return new(CodeExecuted) }},
	TypeGroupRewarded:  {1, func() Payload { return new(GroupRewarded) }},
	TypeRewardShadowed: {1, func() Payload { return new(RewardShadowed) }},
	TypeGroupDropped:   {1, func() Payload { return new(GroupDropped) }},
	TypePolicyUpdated:  {1, func() Payload { return new(PolicyUpdated) }},
	TypeEvalScored:     {1, func() Payload { return new(EvalScored) }},
	TypeStageHeartbeat: {1, func() Payload { return new(StageHeartbeat) }},
	TypeRunFinished:    {1, func() Payload { return new(RunFinished) }},
}

// Types returns every event type, sorted.
func Types() []Type { return slices.Sorted(maps.Keys(registry)) }

// CurrentVersion returns the schema version this build writes for t, or 0 for
// an unknown type.
func CurrentVersion(t Type) int { return registry[t].version }

// NewPayload returns an empty payload of type t, or nil for an unknown type.
func NewPayload(t Type) Payload {
	entry, ok := registry[t]
	if !ok {
		return nil
	}
	return entry.make()
}

// Role names one of the two policies that train against each other.
type Role string

// The two roles.
const (
	RoleCode Role = "code" // the Code LLM
	RoleTest Role = "test" // the Test LLM
)

// Validate accepts the two roles.
func (r Role) Validate() error {
	if r != RoleCode && r != RoleTest {
		return invalid("role", "%q is neither %q nor %q", clip(string(r)), RoleCode, RoleTest)
	}
	return nil
}
