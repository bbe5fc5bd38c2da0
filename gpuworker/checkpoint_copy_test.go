package gpuworker_test

import (
	"path/filepath"
	"slices"
	"testing"

	"codea1/events"
	"codea1/gpuworker/checkpoint"
)

// A trainer continues from a version that was copied from another run and
// reaches the weights of that run.
func TestTrainerContinuesFromACopiedVersion(t *testing.T) {
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
		target := checkpoint.Folder{Path: to, Run: "r2", Role: role}
		if err := checkpoint.Copy(t.Context(), checkpoint.Folder{Path: from, Run: "r1", Role: role}, target, 2, events.Start); err != nil {
			t.Fatal(err)
		}
		if v, err := target.Versions(); err != nil || !slices.Equal(v, []int{2}) {
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
			t.Errorf("%s: the weights differ:\n%s", role, diff)
		}
	}
}
