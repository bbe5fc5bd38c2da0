package fork

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"codea1/events"
	"codea1/replay/eventlog"
)

// resumption prepares a run directory so that bus, recorder and trainers continue
// where its log ends.
type resumption struct {
	host      Host
	retrainer Retrainer
	log       *eventlog.Log
	progress  Progress
	dir       string // run directory
	run       string
	config    string
	from      string // run directory with the checkpoints
	fromRun   string // name of its run

	seeded    Seeded
	placed    []string // versions with a copied checkpoint
	retrained []string // versions that were trained again
}

// resume seeds the bus, places the versions of each role, and sets the log's
// position last, so that an interrupted resume can be repeated.
func (r *resumption) resume(ctx context.Context, versions map[events.Role][]int) error {
	marks, err := r.trainerMarks(ctx, slices.Concat(slices.Collect(maps.Values(versions))...))
	if err != nil {
		return err
	}
	if err := r.seed(ctx, slices.Collect(maps.Values(marks))); err != nil {
		return err
	}
	for _, role := range bothRoles {
		for _, v := range versions[role] {
			p := Placement{
				From: r.from, FromRun: r.fromRun, To: r.dir, Run: r.run, Role: role, Version: v,
				Position: r.seeded.Positions[marks[v]],
			}
			if err := r.place(ctx, p); err != nil {
				return fmt.Errorf("%s v%d: %w", role, v, err)
			}
		}
	}
	return r.log.Rebase(r.seeded.End)
}

// trainerMarks returns, for each policy version, the last event before the first
// event of a later step. The trainer that continues from the version reads from
// there.
func (r *resumption) trainerMarks(ctx context.Context, versions []int) (map[int]uint64, error) {
	last, _ := r.log.Last()
	marks := make(map[int]uint64, len(versions))
	for _, v := range versions {
		marks[v] = last
	}
	// A group begins with its problem.posed event. If that event cannot be
	// decoded, the group begins with its group.dropped event.
	types := []events.Type{events.TypeProblemPosed, events.TypeGroupDropped}
	for record, err := range r.log.Read(ctx, eventlog.ReadOptions{To: last, Types: types}) {
		if err != nil {
			return nil, err
		}
		step, ok := eventlog.StepOf(&record.Message)
		if !ok {
			continue // a group of an evaluation
		}
		for _, v := range versions {
			if step > v {
				marks[v] = min(marks[v], record.Seq-1)
			}
		}
	}
	return marks, nil
}

func (r *resumption) seed(ctx context.Context, marks []uint64) error {
	bus, closeBus, err := r.host.OpenBus(ctx, r.dir, r.run, r.config)
	if err != nil {
		return err
	}
	last, _ := r.log.Last()
	progress, finish := r.progress.start(Operation{Name: "publishing", Total: last})
	r.seeded, err = Seed(ctx, r.log, bus, marks, progress)
	finish()
	return errors.Join(err, closeBus())
}

// place places a checkpoint, and trains the version again from the log if the run
// has not kept its checkpoint.
func (r *resumption) place(ctx context.Context, p Placement) (err error) {
	name := fmt.Sprintf("%s v%d", p.Role, p.Version)
	kept, err := r.host.Checkpoints(p.From, p.Role)
	if err != nil {
		return err
	}
	if slices.Contains(kept, p.Version) {
		err := r.host.PlaceCheckpoint(ctx, p)
		if err == nil {
			r.placed = append(r.placed, name)
			return nil
		}
		// A running origin may have removed the checkpoint meanwhile.
		if kept, _ := r.host.Checkpoints(p.From, p.Role); slices.Contains(kept, p.Version) {
			return err
		}
	}
	if r.retrainer == nil {
		return fmt.Errorf("its checkpoint was not kept: %w", ErrNoRetrainer)
	}
	work, err := os.MkdirTemp(r.dir, ".retrain-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	at, finish := r.progress.start(r.retraining(ctx, p.Role, p.Version))
	_, err = Retrain(ctx, r.log, r.retrainer, p.Role, p.From, work, func(done, _ int) { at(uint64(done)) })
	finish()
	if err != nil {
		return fmt.Errorf("its checkpoint was not kept, and training it again failed: %w", err)
	}
	p.From, p.Made, p.FromRun = work, true, r.run
	r.retrained = append(r.retrained, name)
	return r.host.PlaceCheckpoint(ctx, p)
}

// retraining describes the training of a role's versions up to one. It takes about as
// long as it took the run.
func (r *resumption) retraining(ctx context.Context, role events.Role, version int) Operation {
	took := 1.0
	updates, _ := eventlog.Updates(ctx, r.log) // Retrain reads them again, and returns the error
	for _, u := range updates {
		if u.Role == role && u.Version <= version {
			took += u.Metrics.Seconds
		}
	}
	return Operation{
		Name:  fmt.Sprintf("training %s v1 to v%d again, because the checkpoint was not kept", role, version),
		Total: uint64(version), Takes: time.Duration(took * float64(time.Second)),
	}
}
