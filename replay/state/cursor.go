package state

import (
	"slices"

	"codea1/events"
)

// Status is the progress of a group.
type Status string

// A group is posed, and ends in one of three ways.
const (
	Posed    Status = "posed"
	Rewarded Status = "rewarded"
	Scored   Status = "scored" // groups of evaluations
	Dropped  Status = "dropped"
)

// statusOf holds the status that an event gives to its group.
var statusOf = map[events.Type]Status{
	events.TypeProblemPosed:  Posed,
	events.TypeGroupRewarded: Rewarded,
	events.TypeEvalScored:    Scored,
	events.TypeGroupDropped:  Dropped,
}

// Cursor is the position of a run in its curriculum. A curriculum continues from
// the problems, their order, its configuration and the cursor.
type Cursor struct {
	Attempt int `json:"attempt"` // number of run.started events
	// Inherited is the number of attempts that a fork has from its origin, with the event
	// that made it.
	Inherited int `json:"inherited_attempts,omitempty"`

	Planned  int    `json:"planned"`  // steps that the last run.started event plans
	Finished string `json:"finished"` // reason for the end of the last attempt; empty while it runs
	Code     int    `json:"code"`     // newest step that the Code LLM has trained
	Test     int    `json:"test"`     // newest step that the Test LLM has trained
	// Models are those of the last run.started event.
	Models events.Models `json:"models,omitempty"`
	// Steps holds the groups of every step that at least one role has still to
	// train. All groups of an earlier step have ended.
	Steps map[int]map[string]Status `json:"steps"`
	// Evaluations holds the groups of every evaluation, by its tag.
	Evaluations map[string]map[string]Status `json:"evaluations"`
}

func newCursor() Cursor {
	return Cursor{Steps: make(map[int]map[string]Status), Evaluations: make(map[string]map[string]Status)}
}

// Trained returns the last step that every model was trained on.
func (c *Cursor) Trained() int {
	return c.Models.Trained(map[events.Role]int{events.RoleCode: c.Code, events.RoleTest: c.Test})
}

// Open returns the names of the groups that have not ended, sorted.
func (c *Cursor) Open() []string {
	var open []string
	for _, groups := range c.Steps {
		open = appendPosed(open, groups)
	}
	for _, groups := range c.Evaluations {
		open = appendPosed(open, groups)
	}
	slices.Sort(open)
	return open
}

func appendPosed(open []string, groups map[string]Status) []string {
	for group, status := range groups {
		if status == Posed {
			open = append(open, group)
		}
	}
	return open
}

func (c *Cursor) apply(e *Event) {
	if status, ok := statusOf[e.Type]; ok {
		c.set(e.Group, status)
		return
	}
	switch p := e.Payload.(type) {
	case *events.RunStarted:
		c.Attempt, c.Planned, c.Finished, c.Models = p.Attempt, p.Steps, "", p.Models
		if p.Origin != nil {
			c.Inherited = p.Attempt
		}
	case *events.RunFinished:
		c.Finished = p.Reason
	case *events.PolicyUpdated:
		if p.Role == events.RoleCode {
			c.Code = max(c.Code, p.Step)
		} else {
			c.Test = max(c.Test, p.Step)
		}
		for step := range c.Steps {
			if step <= c.Trained() {
				delete(c.Steps, step)
			}
		}
	}
}

// set records the status of a group. The first end of a group counts.
func (c *Cursor) set(group string, status Status) {
	var groups map[string]Status
	if step, ok := TrainingStep(group); ok {
		if step <= c.Trained() {
			return
		}
		groups = entry(c.Steps, step)
	} else if tag, ok := evaluationTag(group); ok {
		groups = entry(c.Evaluations, tag)
	} else {
		return
	}
	if old, known := groups[group]; !known || old == Posed {
		groups[group] = status
	}
}

// entry returns the inner map of a key, and creates it if there is none.
func entry[K comparable](m map[K]map[string]Status, key K) map[string]Status {
	if m[key] == nil {
		m[key] = make(map[string]Status)
	}
	return m[key]
}
