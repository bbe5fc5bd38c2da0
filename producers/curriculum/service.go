package curriculum

import (
	"context"
	"fmt"
	"time"

	"codea1/events"
)

// Publisher is the part of a Bus the curriculum needs.
type Publisher interface {
	Publish(ctx context.Context, messages ...events.Message) error
}

// Service poses the groups that a Curriculum finds due.
type Service struct {
	Curriculum *Curriculum
	Bus        Publisher
	Run        string
	Source     string           // the stage instance named in the events
	Now        func() time.Time // time stamps only
}

// OnAppend observes messages that were appended to the log, in order, and
// publishes what is due then. Call it with none to start.
func (s *Service) OnAppend(ctx context.Context, appended []events.Message) error {
	if err := s.Observe(appended); err != nil {
		return err
	}
	due := s.Curriculum.Due()
	messages := make([]events.Message, 0, len(due))
	for i := range due {
		m, err := events.Encode(events.New(s.Run, due[i].Plan.GroupID(), s.Source, s.Now(), &due[i]))
		if err != nil {
			return fmt.Errorf("curriculum: pose %s: %w", due[i].Problem.ID, err)
		}
		messages = append(messages, m)
	}
	for len(messages) > 0 {
		n := min(len(messages), events.MaxPublishBatch)
		if err := s.Bus.Publish(ctx, messages[:n]...); err != nil {
			return fmt.Errorf("curriculum: publish: %w", err)
		}
		messages = messages[n:]
	}
	return nil
}

// Types are the events a curriculum observes.
func Types() []events.Type {
	return []events.Type{events.TypeProblemPosed, events.TypeEvalScored, events.TypeGroupDropped, events.TypePolicyUpdated}
}

// Observe folds logged messages into the curriculum without posing anything:
// the way to catch up with the log on start.
func (s *Service) Observe(logged []events.Message) error {
	for i := range logged {
		m := &logged[i]
		switch m.Type {
		case events.TypeProblemPosed:
			s.Curriculum.ObservePosed(m.Group)
		case events.TypeEvalScored, events.TypeGroupDropped:
			s.Curriculum.ObserveEnded(m.Group)
		case events.TypePolicyUpdated:
			e, err := m.Decode()
			if err != nil {
				return fmt.Errorf("curriculum: %w", err)
			}
			p := e.Payload.(*events.PolicyUpdated)
			s.Curriculum.ObservePolicy(p.Role, p.Version)
		}
	}
	return nil
}
