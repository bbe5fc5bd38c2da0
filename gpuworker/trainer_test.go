package gpuworker_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"

	"codea1/events"
	"codea1/events/stage"
	"codea1/gpuworker"
	"codea1/gpuworker/checkpoint"
)

var sampleRun = gpuworker.SampleRun{Name: "r1", Steps: 4, Groups: 6, Answers: 3, Suites: 2, Seed: 11}

// initial saves the checkpoint of version 0.
func initial(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "initial")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := newEngine(1).Save(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func hyper() gpuworker.Hyperparameters {
	return gpuworker.Hyperparameters{
		Schedule: gpuworker.Schedule{Base: 0.02, Warmup: 2, Total: 12},
		Update: gpuworker.UpdateConfig{
			ClipLow: 0.20, ClipHigh: 0.28, DualClip: 10, LogRatioClamp: 20, KLCoef: 0.001,
			WeightDecay: 0.1, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, GradClip: 1,
		},
		GroupsPerStep: sampleRun.Groups, GroupsPerBatch: 2,
	}
}

func trainerConfig(bus events.Bus, role events.Role, dir, start string) gpuworker.TrainerConfig {
	return gpuworker.TrainerConfig{
		Bus: bus, Learner: newEngine(99), Run: sampleRun.Name, Role: role, Source: string(role) + "-trainer",
		Checkpoints: dir, Initial: start, Steps: sampleRun.Steps, Hyper: hyper(), KeepLast: sampleRun.Steps,
	}
}

// run trains until the last step.
func run(t *testing.T, config gpuworker.TrainerConfig) error {
	t.Helper()
	trainer, err := gpuworker.NewTrainer(config)
	if err != nil {
		t.Fatal(err)
	}
	return trainer.Run(t.Context())
}

// updates returns the role's policy.updated payloads.
func updates(t *testing.T, bus events.Bus, n int) []*events.PolicyUpdated {
	t.Helper()
	var out []*events.PolicyUpdated
	for _, e := range read(t, bus, sampleRun.Name, n, events.TypePolicyUpdated) {
		out = append(out, e.Payload.(*events.PolicyUpdated))
	}
	return out
}

// sameUpdates compares the events of two trainers without URIs and durations.
func sameUpdates(a, b []*events.PolicyUpdated) string {
	return cmp.Diff(a, b, cmpopts.IgnoreFields(events.Checkpoint{}, "URI"), cmpopts.IgnoreFields(events.PolicyMetrics{}, "Seconds"))
}

// reference trains the sample run without interruption.
func reference(t *testing.T, role events.Role, start string) []*events.PolicyUpdated {
	t.Helper()
	bus := connect(t, server(t))
	publish(t, bus, sampleRun.Messages())
	if err := run(t, trainerConfig(bus, role, policies(t, role).Path, start)); err != nil {
		t.Fatal(err)
	}
	return updates(t, bus, sampleRun.Steps)
}

func TestTrainerMakesOneVersionPerStep(t *testing.T) {
	t.Parallel()
	start := initial(t)
	for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
		t.Run(string(role), func(t *testing.T) {
			got := reference(t, role, start)
			before := ""
			for i, u := range got {
				if u.Role != role || u.Version != i+1 || u.Step != i+1 || len(u.Groups)+len(u.Dropped) != sampleRun.Groups {
					t.Errorf("update %d: %+v", i, u)
				}
				if m := u.Metrics; m.Tokens == 0 || m.Sequences == 0 || m.GradNorm <= 0 || m.LearningRate <= 0 || m.Entropy <= 0 {
					t.Errorf("version %d: metrics %+v", u.Version, m)
				}
				if u.Checkpoint.SHA256 == before {
					t.Errorf("version %d has the weights of the one before", u.Version)
				}
				before = u.Checkpoint.SHA256
				dir, err := u.Checkpoint.Dir()
				if err != nil {
					t.Fatal(err)
				}
				described, err := checkpoint.Describe(t.Context(), dir)
				if err != nil || described != u.Checkpoint {
					t.Errorf("version %d: %+v on disk, %v, %+v published", u.Version, described, err, u.Checkpoint)
				}
			}
		})
	}
}

func TestOrderOfArrivalChangesNoWeight(t *testing.T) {
	t.Parallel()
	start := initial(t)
	want := reference(t, events.RoleTest, start)
	orders := uint64(1)
	if os.Getenv("CODEA1_TEST_THOROUGH") == "1" {
		orders = 3
	}
	for seed := range orders {
		bus := connect(t, server(t))
		publish(t, bus, sampleRun.Shuffled(seed))
		if err := run(t, trainerConfig(bus, events.RoleTest, filepath.Join(t.TempDir(), "checkpoints"), start)); err != nil {
			t.Fatal(err)
		}
		if d := sameUpdates(want, updates(t, bus, sampleRun.Steps)); d != "" {
			t.Errorf("order %d: %s", seed, d)
		}
	}
}

func TestTrainerResumes(t *testing.T) {
	t.Parallel()
	start := initial(t)
	want := reference(t, events.RoleCode, start)
	bus := connect(t, server(t))
	publish(t, bus, sampleRun.Shuffled(8))
	dir := filepath.Join(t.TempDir(), "checkpoints")
	for steps := 1; steps <= sampleRun.Steps; steps++ {
		config := trainerConfig(bus, events.RoleCode, dir, start)
		config.Steps = steps
		if err := run(t, config); err != nil {
			t.Fatal(err)
		}
	}
	if d := sameUpdates(want, updates(t, bus, sampleRun.Steps)); d != "" {
		t.Error(d)
	}
}

func TestStepWithNothingToLearnMakesAVersion(t *testing.T) {
	t.Parallel()
	bus := connect(t, server(t))
	lagging := sampleRun
	lagging.Lag = 3 // more than MaxStaleness 0 allows from step 2 on
	publish(t, bus, lagging.Messages())
	if err := run(t, trainerConfig(bus, events.RoleCode, filepath.Join(t.TempDir(), "checkpoints"), initial(t))); err != nil {
		t.Fatal(err)
	}
	got := updates(t, bus, lagging.Steps)
	for i, u := range got[1:] {
		if u.Checkpoint.SHA256 != got[i].Checkpoint.SHA256 || len(u.Groups) != 0 || len(u.Dropped) != lagging.Groups {
			t.Errorf("version %d: %+v", u.Version, u)
		}
	}
}

func TestTrainerWaitsForTheBus(t *testing.T) {
	t.Parallel()
	bus := connect(t, server(t))
	publish(t, bus, sampleRun.Messages())
	start, dir := initial(t), filepath.Join(t.TempDir(), "checkpoints")
	trainer, err := gpuworker.NewTrainer(trainerConfig(failingBus{bus}, events.RoleCode, dir, start))
	if err != nil {
		t.Fatal(err)
	}
	stop := background(t, trainer.Run)
	first := filepath.Join(dir, "v000001", "trainer.json")
	for {
		if _, err := os.Stat(first); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "v000002")); err == nil {
		t.Error("a second version was made while the first was not published")
	}
	if err := run(t, trainerConfig(bus, events.RoleCode, dir, start)); err != nil {
		t.Fatal(err)
	}
	if d := sameUpdates(reference(t, events.RoleCode, start), updates(t, bus, sampleRun.Steps)); d != "" {
		t.Error(d)
	}
}

// A trainer stops when its version lost to other weights under the ID of its event,
// and says so. Other times under the ID are no other version. A version out of turn
// is none either, for every reader.
func TestTrainerAtAForeignVersion(t *testing.T) {
	t.Parallel()
	start := initial(t)
	mine := reference(t, events.RoleCode, start)
	for name, forge := range map[string]func(*events.PolicyUpdated){
		"OtherWeights": func(p *events.PolicyUpdated) { p.Checkpoint.SHA256 = strings.Repeat("0a", 32) },
		"OtherTimes":   func(p *events.PolicyUpdated) { p.Metrics.Seconds++ },
		"Early":        func(p *events.PolicyUpdated) { p.Checkpoint.SHA256 = strings.Repeat("0a", 32) },
	} {
		t.Run(name, func(t *testing.T) {
			bus := connect(t, server(t))
			publish(t, bus, sampleRun.Messages())
			forged := *mine[1]
			forge(&forged)
			for _, p := range []*events.PolicyUpdated{mine[0], &forged} {
				if name == "Early" && p == mine[0] {
					continue // so the forged one is out of turn
				}
				m, err := events.Encode(events.New(sampleRun.Name, fmt.Sprintf("code-v%06d", p.Version), "other", time.Now(), p))
				if err != nil {
					t.Fatal(err)
				}
				publish(t, bus, []events.Message{m})
			}
			folder := policies(t, events.RoleCode)
			config := trainerConfig(bus, events.RoleCode, folder.Path, start)
			err := run(t, config)
			if name != "OtherWeights" {
				if err != nil {
					t.Fatal(err)
				}
				n := sampleRun.Steps
				if name == "Early" {
					if err := run(t, config); err != nil { // it publishes the last version again
						t.Error(err)
					}
					f := follower(t, bus, folder, newEngine(0), time.Minute)
					background(t, f.Run)
					wait(t, f, n)
					n++
				}
				got := slices.DeleteFunc(updates(t, bus, n), func(p *events.PolicyUpdated) bool {
					return name == "Early" && p.Checkpoint.SHA256 == forged.Checkpoint.SHA256
				})
				if d := sameUpdates(mine, got); name == "Early" && d != "" {
					t.Error(d)
				}
				return
			}
			if !errors.Is(err, events.ErrForeignEvent) || !strings.Contains(err.Error(), "version 2 has other weights") {
				t.Errorf("the trainer ended with %v", err)
			}
			if _, err := os.Stat(folder.Dir(3)); err == nil {
				t.Error("the trainer trains on")
			}
		})
	}
}

// TestTrainerLeavesOutWhatTheEngineRefuses puts tokens outside of the vocabulary
// into the answers of a group.
func TestTrainerLeavesOutWhatTheEngineRefuses(t *testing.T) {
	t.Parallel()
	start := initial(t)
	bus := connect(t, server(t))
	spoilt := ""
	var messages []events.Message
	for _, m := range sampleRun.Messages() {
		e, err := m.Decode()
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := e.Payload.(*events.CodeSampled); ok && p.Posed.Plan.Step == 2 && spoilt == "" {
			spoilt = e.Group
			for i := range p.Answers {
				p.Answers[i].Tokens[0] = 1 << 30
			}
			if m, err = events.Encode(e); err != nil {
				t.Fatal(err)
			}
		}
		messages = append(messages, m)
	}
	publish(t, bus, messages)
	if err := run(t, trainerConfig(bus, events.RoleCode, policies(t, events.RoleCode).Path, start)); err != nil {
		t.Fatal(err)
	}
	for i, u := range updates(t, bus, sampleRun.Steps) {
		if left := slices.Contains(u.Dropped, spoilt) && !slices.Contains(u.Groups, spoilt); left != (i == 1) || len(u.Groups)+len(u.Dropped) != sampleRun.Groups {
			t.Errorf("version %d: %s in neither or both of %v and %v", u.Version, spoilt, u.Groups, u.Dropped)
		}
	}
}

func TestTrainerKeepsTheCheckpointsItShould(t *testing.T) {
	t.Parallel()
	bus := connect(t, server(t))
	publish(t, bus, sampleRun.Messages())
	dir := filepath.Join(t.TempDir(), "checkpoints")
	if err := os.MkdirAll(filepath.Join(dir, ".tmp-v000009"), 0o755); err != nil {
		t.Fatal(err)
	}
	config := trainerConfig(bus, events.RoleCode, dir, initial(t))
	config.KeepLast, config.KeepEvery = 1, 2
	var err error
	registry := prometheus.NewRegistry()
	if config.Meter, err = stage.NewMeter(stage.Config{Name: "trainer", Registerer: registry}); err != nil {
		t.Fatal(err)
	}
	if err := run(t, config); err != nil {
		t.Fatal(err)
	}
	if n := handled(t, registry); n != float64(sampleRun.Steps*sampleRun.Groups) {
		t.Errorf("the meter has %v", n)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if d := cmp.Diff([]string{"v000002", "v000004"}, names); d != "" {
		t.Error(d)
	}
}

func TestErrorOfACorruptCheckpoint(t *testing.T) {
	t.Parallel()
	bus := connect(t, server(t))
	publish(t, bus, sampleRun.Messages())
	start, dir := initial(t), filepath.Join(t.TempDir(), "checkpoints")
	if err := run(t, trainerConfig(bus, events.RoleCode, dir, start)); err != nil {
		t.Fatal(err)
	}
	newest := filepath.Join(dir, "v000004")
	for _, c := range []struct {
		file   string
		damage func(raw []byte) []byte
	}{
		{"model.safetensors", func(raw []byte) []byte { return raw[:len(raw)/2] }},
		{"optimizer.safetensors", func(raw []byte) []byte { raw[len(raw)-3] ^= 1; return raw }},
		{"trainer.json", func(raw []byte) []byte {
			return []byte(strings.Replace(string(raw), `"optimizer_steps": `, `"optimizer_steps": 1`, 1))
		}},
		{"SHA256SUMS", func(raw []byte) []byte { return raw[:10] }},
		{"model.safetensors", nil}, // missing
	} {
		path := filepath.Join(newest, c.file)
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if c.damage == nil {
			err = os.Remove(path)
		} else {
			err = os.WriteFile(path, c.damage(slices.Clone(good)), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		err = run(t, trainerConfig(bus, events.RoleCode, dir, start))
		var damaged *checkpoint.Error
		if !errors.As(err, &damaged) {
			t.Fatalf("%s: %v", c.file, err)
		}
		for _, need := range []string{newest, c.file, "delete directory " + newest} {
			if !strings.Contains(err.Error(), need) {
				t.Errorf("the error does not say %q: %v", need, err)
			}
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("more than one line: %v", err)
		}
		if err := os.WriteFile(path, good, 0o644); err != nil {
			t.Fatal(err)
		}
	}

	// The remedy of the error works: the trainer makes the same version again.
	if err := os.RemoveAll(newest); err != nil {
		t.Fatal(err)
	}
	if err := run(t, trainerConfig(bus, events.RoleCode, dir, start)); err != nil {
		t.Fatal(err)
	}
	described, err := checkpoint.Describe(t.Context(), newest)
	if err != nil || described != updates(t, bus, sampleRun.Steps)[3].Checkpoint {
		t.Errorf("made again: %+v, %v", described, err)
	}
}

func TestTrainerConfigIsChecked(t *testing.T) {
	good := trainerConfig(failingBus{}, events.RoleCode, "c", "i")
	if _, err := gpuworker.NewTrainer(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*gpuworker.TrainerConfig){
		"no learner":         func(c *gpuworker.TrainerConfig) { c.Learner = nil },
		"no role":            func(c *gpuworker.TrainerConfig) { c.Role = "judge" },
		"bad run":            func(c *gpuworker.TrainerConfig) { c.Run = "a/b" },
		"no steps":           func(c *gpuworker.TrainerConfig) { c.Steps = 0 },
		"no learning rate":   func(c *gpuworker.TrainerConfig) { c.Hyper.Schedule.Base = 0 },
		"negative KL":        func(c *gpuworker.TrainerConfig) { c.Hyper.Update.KLCoef = -1 },
		"dual clip below 1":  func(c *gpuworker.TrainerConfig) { c.Hyper.Update.DualClip = 0.5 },
		"empty mini-batches": func(c *gpuworker.TrainerConfig) { c.Hyper.GroupsPerBatch = 0 },
		"no schedule length": func(c *gpuworker.TrainerConfig) { c.Hyper.Schedule.Total = 0 },
	} {
		config := good
		change(&config)
		if _, err := gpuworker.NewTrainer(config); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// handled returns the count of the registry's meter.
func handled(t *testing.T, registry *prometheus.Registry) (sum float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "codea1_stage_handled_total" {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}
