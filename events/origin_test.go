package events

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func forked(origin *Origin) *RunStarted {
	checkpoint := Checkpoint{URI: "file:///runs/r2/checkpoints/code/start", SHA256: strings.Repeat("ab", 32)}
	return &RunStarted{Attempt: 2, Steps: 4, Config: "seed: 1\n", Code: checkpoint, Test: checkpoint, Origin: origin}
}

// A fork says where it comes from under the schema of every run.started: the
// field is one that older builds pass over.
func TestRunStartedNamesItsOrigin(t *testing.T) {
	want := forked(&Origin{Run: "r1", Events: 120, Chain: strings.Repeat("0f", 32)})
	m, err := Encode(sampleEvent(want))
	if err != nil {
		t.Fatal(err)
	}
	e, err := m.Decode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Payload(want), e.Payload); diff != "" {
		t.Error(diff)
	}
	generic, err := m.DecodeAny()
	if err != nil {
		t.Fatal(err)
	}
	if err := validate(t, TypeRunStarted, 1, generic); err != nil {
		t.Error(err)
	}
	for field, origin := range map[string]*Origin{
		"origin.run":    {Run: "a b", Events: 1, Chain: strings.Repeat("0f", 32)},
		"origin.events": {Run: "r1", Chain: strings.Repeat("0f", 32)},
		"origin.chain":  {Run: "r1", Events: 1, Chain: "0f"},
	} {
		if err := forked(origin).Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
