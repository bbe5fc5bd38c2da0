package stage

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"codea1/events"
)

// heartbeat publishes a stage.heartbeat every HeartbeatEvery until ctx ends. It
// skips a heartbeat that it cannot publish.
func (s *Stage) heartbeat(ctx context.Context) {
	tick := time.NewTicker(s.config.HeartbeatEvery)
	defer tick.Stop()
	// The start time of the process makes its heartbeats distinct from those of
	// an earlier process.
	process := s.config.source() + "-" + strconv.FormatInt(s.config.Now().UnixMilli(), 36)
	share := busyShare{slots: s.config.Concurrency, at: s.config.Now()}
	for beat := 1; ; beat++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		limited, cancel := context.WithTimeout(ctx, s.config.HeartbeatEvery)
		now := s.config.Now()
		payload := &events.StageHeartbeat{
			Stage: s.config.Name, Beat: beat,
			Handled: s.metrics.handledCount.Load(), Failed: s.metrics.failedCount.Load(),
			InFlight: int(s.metrics.inFlightCount.Load()), Pending: s.contact.pending(),
			Busy: share.next(now, s.metrics.busy.read(now)),
		}
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
