package gpuworker_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/gpuworker"
)

// A version placed into another run is one that its trainer goes on from, to
// the weights that the first run came to.
func TestPlacedVersionGoesOn(t *testing.T) {
	t.Parallel()
	start := initial(t)
	other := sampleRun
	other.Name = "r2"
	for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
		from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "deep", "to")
		bus := connect(t, server(t))
		publish(t, bus, sampleRun.Messages())
		if err := run(t, trainerConfig(bus, role, from, start)); err != nil {
			t.Fatal(err)
		}
		want := updates(t, bus, sampleRun.Steps)
		place := gpuworker.Placement{From: from, To: to, FromRun: "r1", Run: "r2", Role: role, Version: 2, Position: events.Start}
		if err := place.Place(t.Context()); err != nil {
			t.Fatal(err)
		}
		if v, err := gpuworker.Versions(to); err != nil || !slices.Equal(v, []int{2}) {
			t.Fatalf("versions %v, %v", v, err)
		}

		second := connect(t, server(t))
		publish(t, second, other.Messages())
		config := trainerConfig(second, role, to, start)
		config.Run = "r2"
		if err := run(t, config); err != nil {
			t.Fatal(err)
		}
		var got []*events.PolicyUpdated
		for _, e := range read(t, second, "r2", sampleRun.Steps-1, events.TypePolicyUpdated) {
			got = append(got, e.Payload.(*events.PolicyUpdated))
		}
		if diff := sameUpdates(want[1:], got); diff != "" {
			t.Errorf("%s goes on otherwise:\n%s", role, diff)
		}
	}
}

// A version is placed whole or not at all, over itself too, and whatever a kill
// has left of an earlier try.
func TestPlaceIsWhole(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "code")
	bus := connect(t, server(t))
	publish(t, bus, sampleRun.Messages())
	if err := run(t, trainerConfig(bus, events.RoleCode, folder, initial(t))); err != nil {
		t.Fatal(err)
	}
	dir := func(version string) string { return filepath.Join(folder, version) }
	place := gpuworker.Placement{From: folder, To: folder, FromRun: "r1", Run: "r1", Role: events.RoleCode, Version: 3, Position: "17"}
	for range 2 {
		if err := place.Place(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	// Killed while the new one moved in: the old one is found again.
	if err := os.Rename(dir("v000003"), dir(".replaced-v000003")); err != nil {
		t.Fatal(err)
	}
	if v, err := gpuworker.Versions(folder); err != nil || !slices.Equal(v, []int{1, 2, 3, 4}) {
		t.Fatalf("versions %v, %v", v, err)
	}
	place.Position = "18"
	if err := place.Place(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := gpuworker.RemoveVersion(folder, 4); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"v000001", "v000002", "v000003"}, names); diff != "" {
		t.Error(diff)
	}
	// Damage is not carried on.
	if err := os.WriteFile(filepath.Join(dir("v000002"), "model.safetensors"), []byte("other"), 0o644); err != nil {
		t.Fatal(err)
	}
	place.Version, place.To = 2, filepath.Join(t.TempDir(), "to")
	var damaged *gpuworker.CheckpointError
	if err := place.Place(t.Context()); !errors.As(err, &damaged) {
		t.Errorf("a damaged checkpoint: %v", err)
	}
	if v, err := gpuworker.Versions(place.To); err != nil || len(v) > 0 {
		t.Errorf("versions %v, %v", v, err)
	}
}
