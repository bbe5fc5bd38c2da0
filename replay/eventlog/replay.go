package eventlog

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strconv"

	"codea1/events"
)

// Replay returns a reader that reads the log as a bus is read. A position is the
// number of an event. After the last event its Next returns io.EOF.
func (l *Log) Replay(ctx context.Context, options ReadOptions) events.Reader {
	next, stop := iter.Pull2(l.Read(ctx, options))
	return &replay{next, stop}
}

// Read implements the reading part of a bus: it is Replay with the options of a bus.
// The events of another run are those of this log.
func (b LogBus) Read(ctx context.Context, config events.ReadConfig) (events.Reader, error) {
	options := ReadOptions{Types: config.Types}
	if config.From != events.Start {
		after, err := strconv.ParseUint(string(config.From), 10, 63)
		if err != nil {
			return nil, fmt.Errorf("%w: %q is no number of an event", events.ErrPosition, config.From)
		}
		options.From = after + 1
	}
	return b.Log.Replay(ctx, options), nil
}

// LogBus is a log that is read as a bus is.
type LogBus struct{ Log *Log }

type replay struct {
	next func() (Record, error, bool)
	stop func()
}

// Next implements events.Reader.
func (r *replay) Next(context.Context) (events.Message, events.Position, error) {
	record, err, ok := r.next()
	if !ok {
		return events.Message{}, "", io.EOF
	}
	return record.Message, events.Position(strconv.FormatUint(record.Seq, 10)), err
}

// Close implements events.Reader.
func (r *replay) Close() error {
	r.stop()
	return nil
}
