package progress

import (
	"io"
	"testing"
	"time"
)

// The time left follows from the mean speed of the parts that this command did.
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
		{5500 * time.Millisecond, 5, "grading, about 54s left"},
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
