package curriculum

import (
	"context"
	"fmt"
	"slices"
	"time"

	"codea1/events"
)

// Publisher is the part of a Bus that the curriculum needs.
type Publisher interface {
	Publish(ctx context.Context, messages ...events.Message) error
}

// Service poses the groups that a Curriculum finds due.
type Service struct {
	Curriculum *Curriculum
	Bus        Publisher
	Run        string
	Source     string           // the source named in the events
	Now        func() time.Time // for time stamps and the budget
	// Budget is how long the attempt may take from its run.started; 0 means no
	// limit. The current step becomes the last one as soon as one more step and
	// the evaluation at the end would exceed the budget.
	Budget time.Duration

	durations durations
}

// OnAppend observes messages that were appended to the log, in order, and
// publishes the groups that are due then. To start, call it without messages.
func (s *Service) OnAppend(ctx context.Context, appended []events.Message) error {
	if err := s.Observe(appended); err != nil {
		return err
	}
	if s.Budget > 0 && !s.durations.fits(s.Budget, s.Now()) {
		s.Curriculum.End()
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
	for chunk := range slices.Chunk(messages, events.MaxPublishBatch) {
		if err := s.Bus.Publish(ctx, chunk...); err != nil {
			return fmt.Errorf("curriculum: publish: %w", err)
		}
	}
	return nil
}

// Observe folds logged messages into the curriculum and poses nothing. A service
// that starts catches up with the log this way.
func (s *Service) Observe(logged []events.Message) error {
	for i := range logged {
		m := &logged[i]
		switch m.Type {
		case events.TypeRunStarted:
			s.durations.attemptStarted(m.Time)
		case events.TypeProblemPosed:
			s.Curriculum.ObservePosed(m.Group)
		case events.TypeEvalScored:
			s.Curriculum.ObserveEnded(m.Group)
			s.durations.evaluated(m.Time)
		case events.TypeGroupDropped:
			s.Curriculum.ObserveEnded(m.Group)
		case events.TypePolicyUpdated:
			e, err := m.Admit()
			if err != nil {
				continue // logs of earlier builds may have such an event
			}
			p := e.Payload.(*events.PolicyUpdated)
			before := s.Curriculum.Trained()
			s.Curriculum.ObservePolicy(p.Role, p.Version)
			if steps := s.Curriculum.Trained() - before; steps > 0 {
				s.durations.stepsTrained(m.Time, steps)
			}
		}
	}
	return nil
}
