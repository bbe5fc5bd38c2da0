package judging

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"
)

// A harmless code, which each judge can judge.
const (
	controlQuestion = "Set x to 1."
	controlCode     = "x = 1"
)

const (
	firstPause = time.Second // before the control is asked again
	maxPause   = time.Minute
)

// steady tells a code that a model cannot judge from a server that judges nothing, for
// example because its address is that of a web page or of another kind of model. After
// each code without a judgement it asks about a harmless code. Without a judgement of that
// either, nothing is known about the first code, and steady waits until the server judges,
// as it would wait for a dead one. Otherwise all groups would be dropped, and the run would
// be completed without training.
type steady struct {
	model    Model
	logger   *slog.Logger
	pause    time.Duration
	checking chan struct{} // one control at a time
	changes  atomic.Int64  // outages that have begun, and that have ended
}

func newSteady(model Model, logger *slog.Logger) *steady {
	return &steady{model: model, logger: logger, pause: firstPause, checking: make(chan struct{}, 1)}
}

// ask asks the model about a code. An error that wraps ErrUnjudged concerns only this code.
func (s *steady) ask(ctx context.Context, question, code string, ask func(ctx context.Context, question, code string) error) error {
	for {
		before := s.changes.Load()
		err := ask(ctx, question, code)
		if !errors.Is(err, ErrUnjudged) {
			return err
		}
		waited, failed := s.await(ctx, ask)
		if failed != nil {
			return failed
		}
		if !waited && s.changes.Load() == before {
			return err
		}
	}
}

// await returns when the model judges the harmless code. It reports whether it had to wait.
func (s *steady) await(ctx context.Context, ask func(ctx context.Context, question, code string) error) (waited bool, err error) {
	select {
	case s.checking <- struct{}{}:
		defer func() { <-s.checking }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	for pause := s.pause; ; pause = min(2*pause, maxPause) {
		err := ask(ctx, controlQuestion, controlCode)
		if !errors.Is(err, ErrUnjudged) {
			if waited && err == nil {
				s.changes.Add(1)
				s.logger.Warn("the judge's server judges again", "model", s.model.Name())
			}
			return waited, err
		}
		if !waited {
			waited = true
			s.changes.Add(1)
			s.logger.Error("the judge's server answers, and judges not even `"+controlCode+"`; the groups wait until it does. "+
				"Repair it, or stop the run and resume it with the right --judge-server and --judge-model", "model", s.model.Name(), "error", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return waited, ctx.Err()
		}
	}
}

// Check asks the model once about a harmless code. Model must not wait for an outage.
func Check(ctx context.Context, model Model, verdict bool) error {
	if verdict {
		_, err := model.Safe(ctx, controlQuestion, controlCode)
		return err
	}
	_, err := model.Score(ctx, controlQuestion, controlCode)
	return err
}
