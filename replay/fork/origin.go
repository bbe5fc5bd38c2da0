package fork

import (
	"context"
	"fmt"

	"codea1/events"
	"codea1/replay/eventlog"
)

// OriginError is returned for a fork if its shared events differ from those that
// its run.started event names.
type OriginError struct {
	Seq    uint64 // of the run.started event
	Origin events.Origin
	Reason string
}

func (e *OriginError) Error() string {
	return fmt.Sprintf("event %d names %d shared events of run %s, but %s", e.Seq, e.Origin.Events, e.Origin.Run, e.Reason)
}

// CheckOrigins checks that the log begins with the events of its origins, and
// returns the origins in order. A log is a fork of each origin that a run.started
// event names. With the name of the origin, the shared events must give the chain
// hash that the event names: CheckOrigins does not read the log of the origin. It
// returns an *OriginError for the first difference.
func CheckOrigins(ctx context.Context, log eventlog.Reader) ([]events.Origin, error) {
	var origins []events.Origin
	var run string
	err := eventlog.Decoded(ctx, log, []events.Type{events.TypeRunStarted}, func(r *eventlog.Record, e *events.Event) error {
		origin := e.Payload.(*events.RunStarted).Origin
		if origin == nil {
			return nil
		}
		if r.Seq != origin.Events+1 {
			return &OriginError{r.Seq, *origin, fmt.Sprintf("%d events come before it", r.Seq-1)}
		}
		run = e.Run
		origins = append(origins, *origin)
		return nil
	})
	if err != nil || len(origins) == 0 {
		return nil, err
	}
	chain := make([]eventlog.Hash, len(origins)) // of the log with the name of each origin
	for r, err := range log.Read(ctx, eventlog.ReadOptions{To: origins[len(origins)-1].Events}) {
		if err != nil {
			return nil, err
		}
		own := r.Message
		for i, origin := range origins {
			if r.Seq > origin.Events {
				continue
			}
			r.Message = renaming{run, origin.Run}.apply(own)
			chain[i] = r.ChainAfter(chain[i])
			if r.Seq == origin.Events && chain[i].String() != origin.Chain {
				return nil, &OriginError{origin.Events + 1, origin, "their chain hash differs"}
			}
		}
	}
	return origins, nil
}
