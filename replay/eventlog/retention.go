package eventlog

import (
	"context"
	"fmt"

	"codea1/events"
)

// leastGarbage is the number of bytes of garbage from which a recorder frees the
// log's disk space: that merges all tables.
const leastGarbage = 256 << 20

// retain compacts old steps whenever wake has a value, until ctx ends.
func (r *Recorder) retain(ctx context.Context, wake <-chan struct{}) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-wake:
		}
		err := r.compactOld(ctx)
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("recorder: compact the tokens of old steps: %w", err)
		}
	}
}

// compactOld compacts all steps but the last KeepTokens that both models have
// trained.
func (r *Recorder) compactOld(ctx context.Context) error {
	to := r.log.trainedBefore(r.config.KeepTokens)
	if to <= r.log.compactedTo().to {
		return nil
	}
	to, err := r.log.Settled(ctx, to)
	if err != nil {
		return err
	}
	report, err := r.log.compact(ctx, to, leastGarbage, nil)
	if err != nil {
		return err
	}
	r.config.Logger.Debug("compacted the tokens of old steps",
		"to", report.To, "events", report.Events, "bytes", report.BytesBefore-report.BytesAfter)
	return nil
}

// trainedBefore returns the event at which both models had trained all steps
// except the last keep trained steps; 0 if there are no others.
func (l *Log) trainedBefore(keep int) (seq uint64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.state == nil { // open for reading: nothing is compacted
		return 0
	}
	step := l.state.Cursor.Trained() - keep
	if step < 1 {
		return 0
	}
	for i := range l.state.Checkpoints {
		if c := &l.state.Checkpoints[i]; c.Step == step {
			seq = max(seq, c.Seq)
		}
	}
	return seq
}

// policyUpdated reports whether a message announces a new policy version.
func policyUpdated(m events.Message) bool { return m.Type == events.TypePolicyUpdated }
