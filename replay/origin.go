package replay

import (
	"context"
	"fmt"

	"codea1/events"
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
func (l *Log) CheckOrigins(ctx context.Context) ([]events.Origin, error) {
	forks, err := l.forks(ctx)
	if err != nil || len(forks) == 0 {
		return nil, err
	}
	run, err := l.run(ctx)
	if err != nil {
		return nil, err
	}
	var origins []events.Origin
	for _, f := range forks {
		if f.Seq != f.Origin.Events+1 {
			return nil, &OriginError{f.Seq, f.Origin, fmt.Sprintf("%d events stand before", f.Seq-1)}
		}
		origins = append(origins, f.Origin)
	}
	chain := make([]Hash, len(forks)) // of the log given back to each origin
	for r, err := range l.Scan(ctx, ScanOptions{To: forks[len(forks)-1].Seq - 1}) {
		if err != nil {
			return nil, err
		}
		own := r.Message
		for i, f := range forks {
			if r.Seq > f.Origin.Events {
				continue
			}
			r.Message = renaming{run, f.Origin.Run}.apply(own)
			chain[i] = rechained(chain[i], &r)
			if r.Seq == f.Origin.Events && chain[i].String() != f.Origin.Chain {
				return nil, &OriginError{f.Seq, f.Origin, "they do not add up to the chain hash it had there"}
			}
		}
	}
	return origins, nil
}

// rechained returns the chain hash of a record whose message has changed.
func rechained(previous Hash, r *Record) Hash {
	_, chain := encodeRecord(previous, r)
	return chain
}

// forkPoint is a run.started event that names an origin.
type forkPoint struct {
	Seq    uint64
	Origin events.Origin
}

// forks returns where the run was forked, in order.
func (l *Log) forks(ctx context.Context) ([]forkPoint, error) {
	var forks []forkPoint
	for r, err := range l.Scan(ctx, ScanOptions{Types: []events.Type{events.TypeRunStarted}}) {
		if err != nil {
			return nil, err
		}
		e, err := r.Decode()
		if err != nil {
			return nil, err
		}
		if origin := e.Payload.(*events.RunStarted).Origin; origin != nil {
			forks = append(forks, forkPoint{r.Seq, *origin})
		}
	}
	return forks, nil
}
