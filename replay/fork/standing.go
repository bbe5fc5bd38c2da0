package fork

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"codea1/events"
	"codea1/replay/eventlog"
)

// lowWater returns, for each policy version, the last event before the first
// one that a step after that version needs: a trainer that goes on from the
// version reads from there.
func lowWater(ctx context.Context, log eventlog.Reader, versions []int) (map[int]uint64, error) {
	last, _ := log.Last()
	marks := make(map[int]uint64, len(versions))
	for _, v := range versions {
		marks[v] = last
	}
	// A group begins with its question, or where nobody can read that with its
	// drop.
	types := []events.Type{events.TypeProblemPosed, events.TypeGroupDropped}
	for r, err := range log.Read(ctx, eventlog.ReadOptions{To: last, Types: types}) {
		if err != nil {
			return nil, err
		}
		step, ok := eventlog.StepOf(&r.Message)
		if !ok {
			continue // of an evaluation
		}
		for _, v := range slices.Collect(maps.Keys(marks)) {
			if step > v {
				marks[v] = min(marks[v], r.Seq-1)
			}
		}
	}
	return marks, nil
}

// newestVersions returns the newest version of each role that the log knows.
func newestVersions(ctx context.Context, log eventlog.Reader) (map[events.Role]int, error) {
	updates, err := eventlog.Updates(ctx, log)
	if err != nil {
		return nil, err
	}
	newest := make(map[events.Role]int)
	for _, u := range updates {
		newest[u.Role] = max(newest[u.Role], u.Version)
	}
	return newest, nil
}

// standing makes a run directory stand where its log ends.
type standing struct {
	Host
	log      *eventlog.Log
	progress Progress
	dir      string // run directory
	run      string
	config   string

	marks  map[int]uint64
	seeded Seeded
}

// seed seeds the run's bus with positions for trainers of some versions.
func (s *standing) seed(ctx context.Context, versions []int) (seeded Seeded, err error) {
	if s.marks, err = lowWater(ctx, s.log, versions); err != nil {
		return Seeded{}, err
	}
	bus, closeBus, err := s.OpenBus(ctx, s.dir, s.run, s.config)
	if err != nil {
		return Seeded{}, err
	}
	last, _ := s.log.Last()
	progress, finish := s.progress.start("publishing", last)
	s.seeded, err = Seed(ctx, s.log, bus, s.WorkSets(), slices.Collect(maps.Values(s.marks)), progress)
	finish()
	return s.seeded, errors.Join(err, closeBus())
}

// place puts the version of p where its trainer goes on from. One that the run
// has not kept is trained again from the log, with the configuration in origin.
func (s *standing) place(ctx context.Context, p Placement, retrainer Retrainer, origin string) (again bool, err error) {
	p.Position = s.seeded.Positions[s.marks[p.Version]]
	kept, err := s.Checkpoints(p.From, p.Role)
	if err != nil {
		return false, err
	}
	if slices.Contains(kept, p.Version) {
		if err := s.PlaceCheckpoint(ctx, p); err == nil {
			return false, nil
		} else if now, _ := s.Checkpoints(p.From, p.Role); slices.Contains(now, p.Version) {
			return false, err
		}
		// A run that goes on has let go of it meanwhile.
	}
	if retrainer == nil {
		return false, fmt.Errorf("%s v%d: its checkpoint was not kept: %w", p.Role, p.Version, ErrNoRetrainer)
	}
	work, err := os.MkdirTemp(s.dir, ".retrain-*")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if _, err := Retrain(ctx, s.log, retrainer, p.Role, origin, work, nil); err != nil {
		return false, fmt.Errorf("%s v%d: its checkpoint was not kept, and cannot be made again: %w", p.Role, p.Version, err)
	}
	p.From, p.Made, p.FromRun = work, true, s.run
	return true, s.PlaceCheckpoint(ctx, p)
}
