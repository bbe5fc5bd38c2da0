package stage

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"codea1/events"
)

// heartbeat publishes a stage.heartbeat every HeartbeatEvery until ctx ends. A
// beat that cannot be published is skipped: its absence is the message.
func (s *Stage) heartbeat(ctx context.Context) {
	tick := time.NewTicker(s.config.HeartbeatEvery)
	defer tick.Stop()
	// The start of the process tells its beats from those of its predecessor.
	process := s.config.source() + "-" + strconv.FormatInt(s.config.Now().UnixMilli(), 36)
	last := s.config.Now()
	var busy time.Duration
	var pending int64
	for beat := 1; ; beat++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		limited, cancel := context.WithTimeout(ctx, s.config.HeartbeatEvery)
		if lag, err := s.config.Bus.Lag(limited, s.config.Run, s.config.Name); err == nil {
			pending = lag.Pending
		}
		now := s.config.Now()
		payload := &events.StageHeartbeat{
			Stage: s.config.Name, Beat: beat,
			Handled: s.metrics.handledCount.Load(), Failed: s.metrics.failedCount.Load(),
			InFlight: int(s.metrics.inFlightCount.Load()), Pending: pending,
		}
		total := s.metrics.busy.read(now)
		if interval := now.Sub(last); interval > 0 {
			payload.Busy = float64(total-busy) / float64(interval) / float64(s.config.Concurrency)
		}
		last, busy = now, total
		m, err := events.Encode(events.New(s.config.Run, fmt.Sprintf("%s-%d", process, beat), s.config.source(), now, payload))
		if err == nil {
			err = s.config.Bus.Publish(limited, m)
		}
		cancel()
		if err != nil && ctx.Err() == nil {
			s.logger.Debug("heartbeat not published", "beat", beat, "error", err)
		}
	}
}
