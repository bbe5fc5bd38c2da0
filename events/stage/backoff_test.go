package stage

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBackoffStaysInItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Backoff{
			Initial: time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "initial")),
			Jitter:  rapid.Float64Range(0, 1).Draw(t, "jitter"),
		}
		b.Max = b.Initial + time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "range"))
		if err := b.validate(); err != nil {
			t.Fatal(err)
		}
		key := rapid.String().Draw(t, "key")
		n := rapid.IntRange(1, 1000).Draw(t, "n")
		full := Backoff{Initial: b.Initial, Max: b.Max}.delay(key, n)
		d := b.delay(key, n)
		if d < 0 || d > full || full > b.Max || full < b.Initial {
			t.Fatalf("delay %v, without jitter %v, initial %v, max %v", d, full, b.Initial, b.Max)
		}
		if least := full - time.Duration(b.Jitter*float64(full)) - 1; d < least {
			t.Fatalf("delay %v is jittered below %v", d, least)
		}
		if b.delay(key, n) != d {
			t.Fatal("the same failure waits differently")
		}
	})
}

func TestJitterSpreads(t *testing.T) {
	b := Backoff{Initial: time.Second, Max: time.Minute, Jitter: 1}
	seen := make(map[time.Duration]bool)
	for i := range 100 {
		seen[b.delay(string(rune('a'+i)), 1)/(100*time.Millisecond)] = true
	}
	if len(seen) < 9 {
		t.Errorf("100 events wait in only %d of 10 tenths of a second", len(seen))
	}
}
