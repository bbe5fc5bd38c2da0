package query

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"codea1/events"
	"codea1/events/commandline"
	"codea1/replay/eventlog"
)

// ErrPosition is returned for a text that is not a position in a log.
var ErrPosition = errors.New("not a position: want an event's number, step:N, start or end")

// Position returns the sequence number of the last event at a position: an
// event's number, start (0), end, or step:N for the event with which every model
// was trained on step N.
func Position(ctx context.Context, log eventlog.Reader, text string) (uint64, error) {
	last, _ := log.Last()
	switch {
	case text == "start":
		return 0, nil
	case text == "end":
		return last, nil
	case strings.HasPrefix(text, "step:"):
		step, err := strconv.Atoi(strings.TrimPrefix(text, "step:"))
		if err != nil || step < 0 {
			return 0, commandline.Wrong(fmt.Errorf("%q: %w", text, ErrPosition))
		}
		return afterStep(ctx, log, step)
	}
	seq, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, commandline.Wrong(fmt.Errorf("%q: %w", text, ErrPosition))
	}
	if seq > last {
		return 0, commandline.Wrong(fmt.Errorf("position %d: the log ends at %d: %w", seq, last, eventlog.ErrNotFound))
	}
	return seq, nil
}

func afterStep(ctx context.Context, log eventlog.Reader, step int) (uint64, error) {
	if step == 0 {
		return 0, nil
	}
	models, err := eventlog.Models(ctx, log)
	if err != nil {
		return 0, err
	}
	trained := make(map[events.Role]uint64)
	newest := make(map[events.Role]int) // steps
	err = eventlog.Decoded(ctx, log, []events.Type{events.TypePolicyUpdated}, func(r *eventlog.Record, e *events.Event) error {
		u := e.Payload.(*events.PolicyUpdated)
		newest[u.Role] = u.Step
		if u.Step == step {
			trained[u.Role] = r.Seq
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	if roles := models.TrainedRoles(); len(trained) < len(roles) {
		last := step
		for _, role := range roles {
			last = min(last, newest[role])
		}
		return 0, commandline.Wrong(fmt.Errorf("step %d has not been trained by every model, step %d is the newest: %w", step, last, eventlog.ErrNotFound))
	}
	return max(trained[events.RoleCode], trained[events.RoleTest]), nil
}
