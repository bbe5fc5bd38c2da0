package fork

import (
	"context"

	"codea1/events"
	"codea1/replay/eventlog"
)

// Rebuilt is the result of Rebuild and RebuildFromBus.
type Rebuilt struct {
	NewLog
	Refused uint64 // events that descend from a refused payload
}

// Rebuild makes a log in dir from the events of another log. It makes index,
// Mistake Book and head again and does not read those of the source. If the
// chain hash differs from that of the source, it returns a *CorruptError. dir
// must be empty or absent; after a failure it is so still.
func Rebuild(ctx context.Context, source *eventlog.Log, dir string, options eventlog.Options, progress func(done uint64)) (Rebuilt, error) {
	var report Rebuilt
	err := report.makeLog(dir, options, func(target *eventlog.Log) error {
		last, chain := source.Last()
		err := report.copy(ctx, source, target, last, func(r *eventlog.Record) eventlog.Incoming {
			// The position belongs to the last event: a reader of a partial log
			// reads the bus from the start.
			position := events.Start
			if r.Seq == last {
				position = source.Position()
			}
			return r.Incoming(position)
		}, progress)
		if err != nil {
			return err
		}
		if got, gotChain := target.Last(); got != last || gotChain != chain {
			return &eventlog.CorruptError{Dir: source.Dir(), Seq: got, Reason: "its events do not give the chain hash of its end"}
		}
		if report.Refused, err = eventlog.CopyRefusals(ctx, source, target); err != nil {
			return err
		}
		return eventlog.CopyQuarantine(ctx, source, target)
	})
	return report, err
}
