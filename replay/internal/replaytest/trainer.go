package replaytest

import (
	"context"
	"fmt"
	"time"

	"codea1/events"
)

// TrainerBus is the part of events.Bus that Train uses.
type TrainerBus interface {
	Publish(ctx context.Context, messages ...events.Message) error
	Read(ctx context.Context, config events.ReadConfig) (events.Reader, error)
}

// Train publishes the versions of a role up to last on a bus. Before each version
// it reads the rewarded groups of its step. The weights are those of Tell. From
// version wrong on they differ; 0 is no version.
func Train(ctx context.Context, bus TrainerBus, run string, role events.Role, last, wrong int) error {
	reader, err := bus.Read(ctx, events.ReadConfig{Run: run, Types: []events.Type{events.TypeGroupRewarded}})
	if err != nil {
		return err
	}
	defer func() { _ = reader.Close() }()
	var position events.Position
	for step := 1; step <= last; step++ {
		var groups []string
		for range Groups {
			m, after, err := reader.Next(ctx)
			if err != nil {
				return err
			}
			if after == position {
				return fmt.Errorf("position %s twice", after)
			}
			position = after
			groups = append(groups, m.Group)
		}
		weights := step
		if wrong != 0 && step >= wrong {
			weights = -step
		}
		m, err := events.Encode(events.New(run, fmt.Sprintf("%s-v%06d", role, step), "again", time.Now(), &events.PolicyUpdated{
			Role: role, Version: step, Step: step, Groups: groups, Checkpoint: Checkpoint(string(role), weights),
		}))
		if err != nil {
			return err
		}
		if err := bus.Publish(ctx, m); err != nil {
			return err
		}
	}
	return nil
}
