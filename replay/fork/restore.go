package fork

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"codea1/events"
	"codea1/replay/eventlog"
)

// ConfigFile is the file of a run directory with the run's configuration.
const ConfigFile = "config.yaml"

// Restored is the result of RestoreBus.
type Restored struct {
	Events    uint64   // published
	Open      uint64   // deliveries left to the workers
	Placed    []string // versions whose trainer continues from a new position
	Removed   []string // versions that the log does not have
	Retrained []string // versions that were trained again because their checkpoint was gone
}

// RestoreBus publishes a stopped run's log on an empty bus and sets the positions
// of recorder and trainers. Events that only the old bus had are made again: they
// follow from the log. The Host moves an embedded bus aside; the run must be
// removed from any other bus first.
func RestoreBus(ctx context.Context, host Host, retrainer Retrainer, log *eventlog.Log, progress Progress) (Restored, error) {
	r := restoring{standing: standing{Host: host, log: log, progress: progress, dir: filepath.Dir(log.Dir())}, retrainer: retrainer}
	err := r.restore(ctx)
	return r.report, err
}

// restoring sets bus and trainers back to a log.
type restoring struct {
	standing
	retrainer Retrainer
	report    Restored
}

func (r *restoring) restore(ctx context.Context) error {
	config, err := os.ReadFile(filepath.Join(r.dir, ConfigFile))
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	r.config = string(config)
	if r.run, err = eventlog.RunName(ctx, r.log); err != nil {
		return err
	}
	newest, err := newestVersions(ctx, r.log)
	if err != nil {
		return err
	}
	// A version that the log does not know may have learnt from events that are
	// lost: what replaces them may not be the same.
	kept := make(map[events.Role][]int)
	var versions []int
	for _, role := range bothRoles {
		all, err := r.Checkpoints(r.dir, role)
		if err != nil {
			return err
		}
		for _, v := range all {
			if v <= newest[role] {
				kept[role] = append(kept[role], v)
				continue
			}
			if err := r.RemoveCheckpoint(r.dir, role, v); err != nil {
				return err
			}
			r.report.Removed = append(r.report.Removed, fmt.Sprintf("%s v%d", role, v))
		}
		if v := newest[role]; v > 0 && !slices.Contains(kept[role], v) {
			kept[role] = append(kept[role], v) // to be made again
		}
		versions = append(versions, kept[role]...)
	}
	if err := r.PutBusAside(r.dir, r.config); err != nil {
		return err
	}
	seeded, err := r.seed(ctx, versions)
	if err != nil {
		return err
	}
	r.report.Events, r.report.Open = seeded.Events, seeded.Open
	for _, role := range bothRoles {
		for _, v := range kept[role] {
			p := Placement{From: r.dir, FromRun: r.run, To: r.dir, Run: r.run, Role: role, Version: v}
			again, err := r.place(ctx, p, r.retrainer, r.dir)
			if err != nil {
				return err
			}
			name := fmt.Sprintf("%s v%d", role, v)
			if again {
				r.report.Retrained = append(r.report.Retrained, name)
			} else {
				r.report.Placed = append(r.report.Placed, name)
			}
		}
	}
	// Last: a restore that was interrupted is begun again.
	return r.log.Rebase(seeded.End)
}
