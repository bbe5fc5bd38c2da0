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
	Now        func() time.Time // for time stamps and the budget
	// Budget is how long the attempt may take, counted from its run.started; 0
	// for as long as the steps do. The step under way becomes the last one as
	// soon as the next one and the evaluation at the end would not fit.
	Budget time.Duration

	pace pace
}

// OnAppend observes messages that were appended to the log, in order, and
// publishes what is due then. Call it with none to start.
func (s *Service) OnAppend(ctx context.Context, appended []events.Message) error {
	if err := s.Observe(appended); err != nil {
		return err
	}
	if s.Budget > 0 && !s.pace.fits(s.Budget, s.Now()) {
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
	for len(messages) > 0 {
		n := min(len(messages), events.MaxPublishBatch)
		if err := s.Bus.Publish(ctx, messages[:n]...); err != nil {
			return fmt.Errorf("curriculum: publish: %w", err)
		}
		messages = messages[n:]
	}
	return nil
}

// Observe folds logged messages into the curriculum without posing anything:
// the way to catch up with the log on start.
func (s *Service) Observe(logged []events.Message) error {
	for i := range logged {
		m := &logged[i]
		switch m.Type {
		case events.TypeRunStarted:
			s.pace.attemptStarted(m.Time)
		case events.TypeProblemPosed:
			s.Curriculum.ObservePosed(m.Group)
		case events.TypeEvalScored:
			s.Curriculum.ObserveEnded(m.Group)
			s.pace.evaluated(m.Time)
		case events.TypeGroupDropped:
			s.Curriculum.ObserveEnded(m.Group)
		case events.TypePolicyUpdated:
			e, err := m.Decode()
			if err != nil {
				return fmt.Errorf("curriculum: %w", err)
			}
			p := e.Payload.(*events.PolicyUpdated)
			before := s.Curriculum.Trained()
			s.Curriculum.ObservePolicy(p.Role, p.Version)
			if steps := s.Curriculum.Trained() - before; steps > 0 {
				s.pace.stepsTrained(m.Time, steps)
			}
		}
	}
	return nil
}
