package query

import (
	"testing"

	"codea1/events"
	"codea1/replay/internal/replaytest"
)

func TestSelection(t *testing.T) {
	t.Parallel()
	messages := replaytest.Tell(t)
	for _, tt := range []struct {
		name string
		s    Selection
		want int
	}{
		{"all", Selection{}, 31},
		{"a step", Selection{FromStep: 2, ToStep: 2}, 12},
		{"from a step on", Selection{FromStep: 1}, 24},
		{"a group", Selection{Groups: []string{"s000001-q0001"}}, 5},
		{"types of a step", Selection{FromStep: 1, ToStep: 1, Types: []events.Type{events.TypePolicyUpdated, events.TypeEvalScored}}, 2},
		{"from a time on", Selection{Since: messages[10].Time}, 21},
		{"until a time", Selection{Until: messages[10].Time}, 10},
	} {
		n := 0
		for i := range messages {
			if tt.s.Selects(&messages[i]) {
				n++
			}
		}
		if n != tt.want {
			t.Errorf("%s: %d events, want %d", tt.name, n, tt.want)
		}
	}
}
