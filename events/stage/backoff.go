package stage

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"time"
)

// delay returns the wait after the n-th failure, n from 1. The jitter derives
// from key and n: it spreads the tries of many events, and is the same in every
// run of a test.
func (b Backoff) delay(key string, n int) time.Duration {
	d := b.Initial
	for i := 1; i < n && d < b.Max; i++ {
		d *= 2
	}
	d = min(d, b.Max)
	sum := sha256.Sum256([]byte(key + "#" + strconv.Itoa(n)))
	share := float64(binary.LittleEndian.Uint64(sum[:])>>11) / (1 << 53)
	return d - time.Duration(b.Jitter*share*float64(d))
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
