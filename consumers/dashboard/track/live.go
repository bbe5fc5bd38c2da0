package track

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"codea1/events"
)

// Bus is the part of a bus that Follow uses.
type Bus interface {
	Read(ctx context.Context, config events.ReadConfig) (events.Reader, error)
}

// flushEvery is the longest time that a row waits for the next ones.
const flushEvery = 2 * time.Second

// Follow writes the figures of a run in progress below dir, until its given attempt has
// ended or ctx ends. It returns nothing: no failure here may end the run.
func (f *Flags) Follow(ctx context.Context, bus Bus, run, dir string, attempt int, logger *slog.Logger) {
	if err := f.follow(ctx, bus, run, dir, attempt, logger); err != nil {
		logger.Warn("not all figures are written", "error", err, "remedy", fmt.Sprintf("codea1 track %s --to %s", run, f.Track))
	}
}

func (f *Flags) follow(ctx context.Context, bus Bus, run, dir string, attempt int, logger *slog.Logger) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	tools, err := parseTools(f.Track)
	if err != nil {
		return err
	}
	t, err := New(tools, dir, cmp.Or(f.WandbPython, "python3"), logger)
	if err != nil {
		return err
	}
	t.live = true
	defer func() { err = errors.Join(err, t.Close()) }()
	reader, err := bus.Read(ctx, events.ReadConfig{Run: run, Types: Types(tools)})
	if err != nil {
		return err
	}
	defer reader.Close()
	course := events.NewCourse()
	for flushed := time.Now(); ; {
		message, _, err := reader.Next(ctx)
		if err != nil {
			return fmt.Errorf("read run %s: %w", run, err)
		}
		e, err := message.Admit()
		if err != nil || course.Check(e.Payload) != nil {
			continue // the recorder reports it
		}
		course.Apply(e.Payload)
		t.Apply(e)
		if s := t.State(); s.Finished != "" && s.Attempt == attempt {
			return nil
		}
		if time.Since(flushed) >= flushEvery {
			t.Flush()
			flushed = time.Now()
		}
	}
}
