package fork

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"codea1/events"
	"codea1/replay/eventlog"
)

// Restored is the result of RestoreBus.
type Restored struct {
	Events    uint64   // published
	Open      uint64   // deliveries left to the workers
	Placed    []string // versions with a new position for their trainer
	Removed   []string // versions that the log does not have
	Retrained []string // versions that were trained again because their checkpoint was gone
}

// RestoreBus publishes a stopped run's log on an empty bus and sets the positions
// of recorder and trainers. Events that only the old bus had are made again: they
// follow from the log. The Host moves an embedded bus aside; the run must be
// removed from any other bus first.
func RestoreBus(ctx context.Context, host Host, retrainer Retrainer, log *eventlog.Log, progress Progress) (restored Restored, err error) {
	dir := filepath.Dir(log.Dir())
	config, err := host.Config(dir)
	if err != nil {
		return restored, err
	}
	run, err := eventlog.RunName(ctx, log)
	if err != nil {
		return restored, err
	}
	updates, err := eventlog.Updates(ctx, log)
	if err != nil {
		return restored, err
	}
	newest := make(map[events.Role]int)
	for _, u := range updates {
		newest[u.Role] = max(newest[u.Role], u.Version)
	}
	// A version that the log does not have may be trained on lost events. New
	// events in their place may differ.
	versions := make(map[events.Role][]int)
	for _, role := range bothRoles {
		kept, err := host.Checkpoints(dir, role)
		if err != nil {
			return restored, err
		}
		for _, v := range kept {
			if v <= newest[role] {
				versions[role] = append(versions[role], v)
				continue
			}
			if err := host.RemoveCheckpoint(dir, role, v); err != nil {
				return restored, err
			}
			restored.Removed = append(restored.Removed, fmt.Sprintf("%s v%d", role, v))
		}
		if v := newest[role]; v > 0 && !slices.Contains(versions[role], v) {
			versions[role] = append(versions[role], v) // resume trains it again
		}
	}
	if err := host.PutBusAside(dir, config); err != nil {
		return restored, err
	}
	r := resumption{
		host: host, retrainer: retrainer, log: log, progress: progress,
		dir: dir, run: run, config: config, from: dir, fromRun: run,
	}
	err = r.resume(ctx, versions)
	restored.Events, restored.Open, restored.Placed, restored.Retrained = r.seeded.Events, r.seeded.Open, r.placed, r.retrained
	return restored, err
}
