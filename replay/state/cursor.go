package state

import (
	"maps"
	"slices"

	"codea1/events"
)

// Status is how far a group is.
type Status uint8

// A group is posed, and ends in one of three ways.
const (
	Posed Status = iota + 1
	Rewarded
	Scored // groups of evaluations
	Dropped
)

func (s Status) String() string {
	return [...]string{"unknown", "posed", "rewarded", "scored", "dropped"}[min(s, Dropped+1)%(Dropped+1)]
}

// MarshalText implements encoding.TextMarshaler.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Cursor is where the curriculum of a run stands: with the problems, their
// order and its configuration, all it needs to go on.
type Cursor struct {
	Attempt  int    `json:"attempt"`  // run.started events so far
	Planned  int    `json:"planned"`  // steps, as the last of them says
	Finished string `json:"finished"` // how the last attempt ended; empty while it goes on
	Code     int    `json:"code"`     // the newest step that the Code LLM has trained
	Test     int    `json:"test"`     // and the Test LLM
	// Steps holds the groups of every step that not both have trained. Of one
	// that both have, all groups were posed and have ended.
	Steps map[int]map[string]Status `json:"steps"`
	// Evaluations holds the groups of every evaluation, by its tag.
	Evaluations map[string]map[string]Status `json:"evaluations"`
}

func newCursor() Cursor {
	return Cursor{Steps: make(map[int]map[string]Status), Evaluations: make(map[string]map[string]Status)}
}

// Trained returns the last step that both roles have trained.
func (c *Cursor) Trained() int { return min(c.Code, c.Test) }

// Open returns the groups that are on their way, in the order of their names.
func (c *Cursor) Open() []string {
	var open []string
	for _, groups := range c.Steps {
		open = append(open, posed(groups)...)
	}
	for _, groups := range c.Evaluations {
		open = append(open, posed(groups)...)
	}
	slices.Sort(open)
	return open
}

func posed(groups map[string]Status) (open []string) {
	for group, status := range groups {
		if status == Posed {
			open = append(open, group)
		}
	}
	return open
}

func (c *Cursor) apply(e *Event) {
	switch e.Type {
	case events.TypeProblemPosed:
		c.note(e.Group, Posed)
		return
	case events.TypeGroupRewarded:
		c.note(e.Group, Rewarded)
		return
	case events.TypeEvalScored:
		c.note(e.Group, Scored)
		return
	case events.TypeGroupDropped:
		c.note(e.Group, Dropped)
		return
	}
	switch p := e.Payload.(type) {
	case *events.RunStarted:
		c.Attempt, c.Planned, c.Finished = p.Attempt, p.Steps, ""
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

// note takes down how far a group is. The first end counts.
func (c *Cursor) note(group string, status Status) {
	var groups map[string]Status
	if step, ok := TrainingStep(group); ok {
		if step <= c.Trained() {
			return
		}
		groups = of(c.Steps, step)
	} else if tag, ok := evaluationTag(group); ok {
		groups = of(c.Evaluations, tag)
	} else {
		return
	}
	if groups[group] <= Posed {
		groups[group] = max(groups[group], status)
	}
}

// of returns the inner map of a key, made if need be.
func of[K comparable](m map[K]map[string]Status, key K) map[string]Status {
	if m[key] == nil {
		m[key] = make(map[string]Status)
	}
	return m[key]
}

func (c *Cursor) encode(e *encoder) {
	e.numbers(c.Attempt, c.Planned, c.Code, c.Test)
	e.text(c.Finished)
	e.numbers(len(c.Steps))
	for _, step := range slices.Sorted(maps.Keys(c.Steps)) {
		e.numbers(step)
		encodeGroups(e, c.Steps[step])
	}
	e.numbers(len(c.Evaluations))
	for _, tag := range slices.Sorted(maps.Keys(c.Evaluations)) {
		e.text(tag)
		encodeGroups(e, c.Evaluations[tag])
	}
}

func (c *Cursor) decode(d *decoder) {
	d.numbers(&c.Attempt, &c.Planned, &c.Code, &c.Test)
	c.Finished = d.text()
	for range d.count() {
		step := d.number()
		c.Steps[step] = decodeGroups(d)
	}
	for range d.count() {
		tag := d.text()
		c.Evaluations[tag] = decodeGroups(d)
	}
}

func encodeGroups(e *encoder, groups map[string]Status) {
	e.numbers(len(groups))
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		e.text(group)
		e.numbers(int(groups[group]))
	}
}

func decodeGroups(d *decoder) map[string]Status {
	groups := make(map[string]Status)
	for range d.count() {
		group := d.text()
		status := d.number()
		if status < int(Posed) || status > int(Dropped) {
			d.failed = true
		}
		groups[group] = Status(status)
	}
	return groups
}
