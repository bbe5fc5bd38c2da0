package events

import (
	"fmt"
	"maps"
)

// Course says which attempt and which policy versions of a run come next. The
// recorder and the trainers publish these in order, so an event out of turn is
// not theirs. Every reader of a run quarantines or ignores it.
type Course struct {
	Attempts int  // that have begun
	Ended    bool // the last of them
	Versions map[Role]int
	Start    map[Role]string // SHA-256 of version 0; empty before the first attempt
}

// NewCourse returns the course of a run without events.
func NewCourse() Course { return Course{Versions: make(map[Role]int), Start: make(map[Role]string)} }

// Clone returns a copy.
func (c *Course) Clone() Course {
	next := *c
	next.Versions, next.Start = maps.Clone(c.Versions), maps.Clone(c.Start)
	return next
}

// Check returns why a payload is out of turn, or nil.
func (c *Course) Check(payload Payload) error {
	switch p := payload.(type) {
	case *RunStarted:
		if p.Attempt != c.Attempts+1 {
			return fmt.Errorf("attempt %d begins out of turn: %d have begun", p.Attempt, c.Attempts)
		}
		for role, begun := range c.Start {
			if p.Start(role).SHA256 != begun {
				return fmt.Errorf("attempt %d begins with another checkpoint of the %s model than the run", p.Attempt, role)
			}
		}
	case *RunFinished:
		if p.Attempt != c.Attempts || c.Ended {
			return fmt.Errorf("attempt %d ends out of turn: %d have begun", p.Attempt, c.Attempts)
		}
	case *PolicyUpdated:
		if last := c.Versions[p.Role]; p.Version != last+1 {
			return fmt.Errorf("%s v%d is out of turn: it follows v%d", p.Role, p.Version, last)
		}
	}
	return nil
}

// Apply applies an event of the run.
func (c *Course) Apply(payload Payload) {
	switch p := payload.(type) {
	case *RunStarted:
		c.Attempts, c.Ended = c.Attempts+1, false
		if len(c.Start) == 0 {
			for _, role := range p.Models.Roles() {
				c.Start[role] = p.Start(role).SHA256
			}
		}
	case *RunFinished:
		c.Ended = true
	case *PolicyUpdated:
		c.Versions[p.Role] = max(c.Versions[p.Role], p.Version)
	}
}

// Start returns version 0 of a role.
func (r *RunStarted) Start(role Role) *Checkpoint {
	if role == RoleCode {
		return &r.Code
	}
	return &r.Test
}
