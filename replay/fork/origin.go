package fork

import (
	"context"
	"fmt"

	"codea1/events"
	"codea1/replay/eventlog"
)

// OriginError says that a fork does not share what its run.started says.
type OriginError struct {
	Seq    uint64 // of the run.started
	Origin events.Origin
	Reason string
}

func (e *OriginError) Error() string {
	return fmt.Sprintf("event %d: the run is said to share %d events of run %s, but %s", e.Seq, e.Origin.Events, e.Origin.Run, e.Reason)
}

// CheckOrigins checks that the log begins with the events of the runs that it
// was forked from, as far as its run.started events name any, and returns
// those in order. Given back to its run, the beginning of the log must have the
// chain hash that the origin's log had there: nothing of the origin is needed.
// An *OriginError names the first that does not hold.
func CheckOrigins(ctx context.Context, log eventlog.Reader) ([]events.Origin, error) {
	points, err := forks(ctx, log)
	if err != nil || len(points) == 0 {
		return nil, err
	}
	run, err := eventlog.RunName(ctx, log)
	if err != nil {
		return nil, err
	}
	var origins []events.Origin
	for _, f := range points {
		if f.Seq != f.Origin.Events+1 {
			return nil, &OriginError{f.Seq, f.Origin, fmt.Sprintf("%d events stand before", f.Seq-1)}
		}
		origins = append(origins, f.Origin)
	}
	chain := make([]eventlog.Hash, len(points)) // of the log given back to each origin
	for r, err := range log.Read(ctx, eventlog.ReadOptions{To: points[len(points)-1].Seq - 1}) {
		if err != nil {
			return nil, err
		}
		own := r.Message
		for i, f := range points {
			if r.Seq > f.Origin.Events {
				continue
			}
			r.Message = renaming{run, f.Origin.Run}.apply(own)
			chain[i] = r.ChainAfter(chain[i])
			if r.Seq == f.Origin.Events && chain[i].String() != f.Origin.Chain {
				return nil, &OriginError{f.Seq, f.Origin, "they do not add up to the chain hash it had there"}
			}
		}
	}
	return origins, nil
}

// forkPoint is a run.started event that names an origin.
type forkPoint struct {
	Seq    uint64
	Origin events.Origin
}

// forks returns where the run was forked, in order.
func forks(ctx context.Context, log eventlog.Reader) ([]forkPoint, error) {
	var points []forkPoint
	for r, err := range log.Read(ctx, eventlog.ReadOptions{Types: []events.Type{events.TypeRunStarted}}) {
		if err != nil {
			return nil, err
		}
		e, err := r.Decode()
		if err != nil {
			return nil, err
		}
		if origin := e.Payload.(*events.RunStarted).Origin; origin != nil {
			points = append(points, forkPoint{r.Seq, *origin})
		}
	}
	return points, nil
}
