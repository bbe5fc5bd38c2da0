package command

import (
	"context"
	"log/slog"

	"codea1/events"
	"codea1/replay/eventlog"
)

// DeadLetters returns the dead letters that the log of a run knows: a stage gave up on an
// event, and its group was dropped. The log has neither the numbers of deliveries and rounds
// nor the dead letters of messages that are no events, which drop no group.
func DeadLetters(ctx context.Context, runsDir, run string, logger *slog.Logger) (list []events.DeadLetter, err error) {
	of := runArgument{RunDir: run, RunsDir: runsDir}
	err = of.read(logger, func(l *eventlog.Log) error {
		return eventlog.Decoded(ctx, l, []events.Type{events.TypeGroupDropped}, func(r *eventlog.Record, e *events.Event) error {
			dropped := e.Payload.(*events.GroupDropped)
			if dropped.Reason != events.DropRetries {
				return nil
			}
			letter := events.DeadLetter{Name: dropped.Stage, EventID: e.CausationID, Group: e.Group, Reason: dropped.Detail, Time: e.Time}
			if e.CausationID != "" {
				cause, err := l.Get(ctx, e.CausationID)
				if err != nil {
					return err
				}
				letter.Type = cause.Message.Type
			}
			list = append(list, letter)
			return nil
		})
	})
	return list, err
}
