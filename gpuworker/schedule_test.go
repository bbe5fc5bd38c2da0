package gpuworker

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestSchedule(t *testing.T) {
	s := Schedule{Base: 1, Warmup: 4, Total: 12, MinRatio: 0.1}
	for _, c := range []struct {
		taken int
		want  float64
	}{
		{0, 0.25}, {3, 1}, {4, 1}, // warm-up reaches the peak with its last step
		{8, 0.55},                         // half-way down: 0.1 + 0.9/2
		{12, 0.1}, {13, 0.1}, {1000, 0.1}, // and stays there
	} {
		if got := s.At(c.taken); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("after %d steps: %v, want %v", c.taken, got, c.want)
		}
	}
	if got := (Schedule{Base: 1, Warmup: 10, Total: 5}).At(11); got != 0 {
		t.Errorf("a warm-up longer than the schedule ends at %v", got)
	}
}

func TestScheduleRisesThenFalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Schedule{
			Base: rapid.Float64Range(1e-8, 1).Draw(t, "base"), Warmup: rapid.IntRange(0, 50).Draw(t, "warmup"),
			Total: rapid.IntRange(1, 200).Draw(t, "total"), MinRatio: rapid.Float64Range(0, 1).Draw(t, "min"),
		}
		if err := s.validate(); err != nil {
			t.Fatal(err)
		}
		const slack = 1e-12
		for i := range 220 {
			rate, next := s.At(i), s.At(i+1)
			if rate < 0 || rate > s.Base*(1+slack) {
				t.Fatalf("step %d: %v is outside 0 to %v", i, rate, s.Base)
			}
			if i+1 < s.Warmup && next < rate || i >= s.Warmup && next > rate*(1+slack) {
				t.Fatalf("step %d: %v is followed by %v", i, rate, next)
			}
		}
	})
}
