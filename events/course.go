package events

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Course says which attempt and which policy versions of a run come next. The
// recorder and the trainers publish these in order, so an event out of turn is
// not theirs. Every reader of a run quarantines or ignores it, and they publish
// theirs beside it.
type Course struct {
	Attempts int // that have begun
	Planned  int // steps of the last of them
	Models   Models
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
		if trained := c.Models.Trained(c.Versions); p.Steps > trained || p.Reason == RunCompleted && trained < c.Planned {
			return fmt.Errorf("attempt %d ends too early: %d of %d steps are trained", p.Attempt, trained, c.Planned)
		}
	case *PolicyUpdated:
		if c.Attempts > 0 && !slices.Contains(c.Models.TrainedRoles(), p.Role) {
			return fmt.Errorf("%s v%d is out of turn: the run does not train that model", p.Role, p.Version)
		}
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
		c.Attempts, c.Planned, c.Models, c.Ended = c.Attempts+1, p.Steps, p.Models, false
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

// CourseTypes returns the types that Course.Check can find out of turn.
func CourseTypes() []Type { return []Type{TypeRunStarted, TypePolicyUpdated, TypeRunFinished} }

// PublishInTurn publishes an event of the course of a run. If the bus has an event
// under its ID that came out of turn, no reader has taken that one, and m is stored
// beside it. sure says that such an event may have the same payload as m.
func PublishInTurn(ctx context.Context, m Message, sure bool, publish func(context.Context, ...Message) error,
	read func(context.Context, ReadConfig) (Reader, error)) error {
	for {
		err := publish(ctx, m)
		if !errors.Is(err, ErrForeignEvent) && (err != nil || !sure) {
			return err
		}
		early, failed := m.countEarly(ctx, read)
		if failed != nil || early == m.Beside {
			return errors.Join(failed, err)
		}
		m.Beside = early
	}
}

// countEarly returns the number of stored events under the ID of m that came out of
// turn: all before the one in turn, or one more than m knows of.
func (m *Message) countEarly(ctx context.Context, read func(context.Context, ReadConfig) (Reader, error)) (n int, err error) {
	reader, err := read(ctx, ReadConfig{Run: m.Run, Types: CourseTypes()})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	for course := NewCourse(); n <= m.Beside; {
		found, _, err := reader.Next(ctx)
		if err != nil {
			return 0, err
		}
		e, err := found.Admit()
		if err != nil {
			continue
		}
		reason := course.Check(e.Payload)
		if reason == nil {
			course.Apply(e.Payload)
		}
		if e.ID != m.ID {
			continue
		}
		if end, ok := e.Payload.(*RunFinished); ok && end.Attempt < course.Attempts {
			return 0, reason // it will never be in turn
		}
		if reason == nil || found.Time.Equal(m.Time) { // m itself: the bus lacks events before it
			return n, nil
		}
		n++
	}
	return n, nil
}
