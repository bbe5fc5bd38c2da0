package eventlog

import (
	"fmt"
	"maps"

	"codea1/events"
	"codea1/replay/state"
)

// course is the part of a run's state that says which of its root events come
// next. The recorder, the trainers and the curriculum publish them in order, so an
// event out of turn is not theirs.
type course struct {
	attempts int  // that have begun
	ended    bool // the last of them
	versions map[events.Role]int
	start    map[events.Role]string // SHA-256 of version 0; empty before the first attempt
}

// courseOf returns the course at a state.
func courseOf(s *state.State) course {
	c := course{attempts: int(s.Metrics.Events[events.TypeRunStarted]), ended: s.Cursor.Finished != "", versions: make(map[events.Role]int), start: make(map[events.Role]string)}
	for _, v := range s.Checkpoints {
		c.versions[v.Role] = max(c.versions[v.Role], v.Version)
		if v.Version == 0 {
			c.start[v.Role] = v.SHA256
		}
	}
	return c
}

// clone returns a copy for the next batch: a batch that fails changes nothing.
func (c *course) clone() course {
	next := *c
	next.versions, next.start = maps.Clone(c.versions), maps.Clone(c.start)
	return next
}

// startOf returns version 0 of a role.
func startOf(p *events.RunStarted, role events.Role) *events.Checkpoint {
	if role == events.RoleCode {
		return &p.Code
	}
	return &p.Test
}

// next returns why an event is out of turn, or nil.
func (c *course) next(payload events.Payload) error {
	switch p := payload.(type) {
	case *events.RunStarted:
		if p.Attempt != c.attempts+1 {
			return fmt.Errorf("attempt %d begins out of turn: %d have begun", p.Attempt, c.attempts)
		}
		for role, begun := range c.start {
			if startOf(p, role).SHA256 != begun {
				return fmt.Errorf("attempt %d begins with another checkpoint of the %s model than the run", p.Attempt, role)
			}
		}
	case *events.RunFinished:
		if p.Attempt != c.attempts || c.ended {
			return fmt.Errorf("attempt %d ends out of turn: %d have begun", p.Attempt, c.attempts)
		}
	case *events.PolicyUpdated:
		if last := c.versions[p.Role]; p.Version != last+1 {
			return fmt.Errorf("%s v%d is out of turn: it follows v%d", p.Role, p.Version, last)
		}
	}
	return nil
}

// apply applies an event that enters the log.
func (c *course) apply(payload events.Payload) {
	switch p := payload.(type) {
	case *events.RunStarted:
		c.attempts, c.ended = c.attempts+1, false
		if len(c.start) == 0 {
			for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
				c.start[role] = startOf(p, role).SHA256
			}
		}
	case *events.RunFinished:
		c.ended = true
	case *events.PolicyUpdated:
		c.versions[p.Role] = max(c.versions[p.Role], p.Version)
	}
}
