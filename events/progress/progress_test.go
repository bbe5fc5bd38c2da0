package progress

import (
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// The time left follows from the speed in the newest third of the time of this command.
func TestTimeLeft(t *testing.T) {
	b := New(io.Discard, 100, "grading")
	now := time.Unix(1000, 0)
	b.began, b.now = now, func() time.Time { return now }
	if err := b.Skip(40); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		after time.Duration
		parts int
		want  string
	}{
		{0, 0, "grading"},
		{500 * time.Millisecond, 1, "grading"}, // too early
		{5500 * time.Millisecond, 5, "grading, about 59s left"},
		{24 * time.Second, 24, "grading, about 30s left"},
		{29 * time.Second, 29, "grading, about 1s left"},
		{time.Second, 1, "grading"},
	} {
		now = now.Add(step.after)
		if err := b.Add(step.parts); err != nil {
			t.Fatal(err)
		}
		if got := b.text(); got != step.want {
			t.Errorf("after %d of 100: %q, want %q", b.done, got, step.want)
		}
	}
	if err := b.Finish(); err != nil {
		t.Error(err)
	}
}

// The bar follows a speed that changes: after the first tenth, nearly all of its estimates are
// right within a quarter. In 100 bars with these seeds, 93% were; of those
// at the mean speed since the begin, 87%.
func TestTimeLeftAtADriftingSpeed(t *testing.T) {
	right, all := 0, 0
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 3))
		parts := 50 + random.IntN(800)
		part, drift, slow := 0.02+random.Float64(), 0.5*(2*random.Float64()-1), 1.0
		ends := []time.Duration{0}
		for i := range parts {
			if random.IntN(1+parts/12) == 0 {
				slow = 1 + 0.3*random.Float64()
			}
			took := part * slow * (1 + drift*float64(i)/float64(parts)) * (0.5 + random.Float64())
			ends = append(ends, ends[i]+time.Duration(took*float64(time.Second)))
		}
		b := New(io.Discard, parts, "checking")
		now := time.Unix(1000, 0)
		b.began, b.now = now, func() time.Time { return now }
		end := ends[parts]
		for i, at := range ends[1:parts] {
			now = time.Unix(1000, 0).Add(at)
			if err := b.Set(int64(i + 1)); err != nil {
				t.Fatal(err)
			}
			if at < end/10 {
				continue
			}
			all++
			_, text, found := strings.Cut(strings.TrimSuffix(b.text(), " left"), ", about ")
			left, err := time.ParseDuration(text)
			if found && err == nil && (left-(end-at)).Abs() <= max(time.Second, (end-at)/4) {
				right++
			}
		}
	}
	if share := float64(right) / float64(all); share < 0.91 {
		t.Errorf("%.3f of %d estimates are right", share, all)
	}
}
