package gpuworker_test

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/gpuworker"
)

// notingLearner keeps the sequences of every Update under the step that it belongs
// to.
type notingLearner struct {
	gpuworker.Learner
	step  int
	noted map[int][]gpuworker.Sequence
}

func (l *notingLearner) Update(ctx context.Context, s []gpuworker.Sequence, c gpuworker.UpdateConfig) (gpuworker.UpdateStats, error) {
	l.noted[l.step] = append(l.noted[l.step], s...)
	return l.Learner.Update(ctx, s, c)
}

func (l *notingLearner) Save(ctx context.Context, dir string) error {
	l.step++
	return l.Learner.Save(ctx, dir)
}

// TestRecomputedLogProbs compares the old log-probs and the weights of all updates
// with those of an engine that loads the weights before the step, and the metrics
// with sums over them.
func TestRecomputedLogProbs(t *testing.T) {
	t.Parallel()
	const limit, steps = 0.02, 2
	start, dir := initial(t), filepath.Join(t.TempDir(), "checkpoints")
	stale := sampleRun
	stale.Lag = 1
	train := func(dir, old string) (map[int][]gpuworker.Sequence, []*events.PolicyUpdated) {
		bus := connect(t, server(t))
		publish(t, bus, stale.Messages())
		config := trainerConfig(bus, events.RoleCode, dir, start)
		learner := &notingLearner{Learner: config.Learner, step: 1, noted: map[int][]gpuworker.Sequence{}}
		config.Learner, config.Steps = learner, steps
		config.Hyper.MaxStaleness, config.Hyper.OldProbs, config.Hyper.ImportanceCap = 1, old, limit
		if err := run(t, config); err != nil {
			t.Fatal(err)
		}
		return learner.noted, updates(t, bus, steps)
	}
	sampled, plain := train(filepath.Join(t.TempDir(), "checkpoints"), gpuworker.OldSampled)
	recomputed, measured := train(dir, gpuworker.OldRecomputed)

	before := newEngine(7)
	for step := 1; step <= steps; step++ {
		if plain[step-1].Metrics.Mismatch != nil {
			t.Errorf("step %d: log-probs that were not computed again have a mismatch", step)
		}
		from := start
		if step > 1 {
			from = filepath.Join(dir, "v000001")
		}
		if err := before.Load(t.Context(), from); err != nil {
			t.Fatal(err)
		}
		trainer, err := before.LogProbs(t.Context(), gpuworker.Current, sampled[step], 1)
		if err != nil {
			t.Fatal(err)
		}
		var want events.Mismatch
		tokens := 0.0
		for i, s := range recomputed[step] {
			if d := cmp.Diff(trainer[i], s.OldProbs); d != "" {
				t.Errorf("step %d, sequence %d: old log-probs:\n%s", step, i, d)
			}
			for j := range s.OldProbs {
				ratio := math.Exp(float64(trainer[i][j])) / math.Exp(float64(sampled[step][i].OldProbs[j]))
				if got := float64(s.Weights[j]); math.Abs(got-math.Min(ratio, limit)) > 1e-5 {
					t.Errorf("step %d, sequence %d, token %d: weight %v, want %v or %v at most", step, i, j, got, ratio, limit)
				}
				tokens++
				want.MeanAbs += math.Abs(math.Log(ratio))
				want.Max = max(want.Max, math.Abs(math.Log(ratio)))
				want.KL += ratio - math.Log(ratio) - 1
				if ratio > limit {
					want.Truncated++
				}
			}
		}
		got := measured[step-1].Metrics.Mismatch
		if got == nil || tokens == 0 || want.Truncated == 0 || want.Truncated == tokens {
			t.Fatalf("step %d: %+v, %v tokens of which %v are truncated", step, got, tokens, want.Truncated)
		}
		for name, pair := range map[string][2]float64{
			"mean": {got.MeanAbs, want.MeanAbs / tokens}, "largest": {got.Max, want.Max},
			"KL": {got.KL, want.KL / tokens}, "truncated": {got.Truncated, want.Truncated / tokens},
		} {
			if math.Abs(pair[0]-pair[1]) > 1e-9*(1+pair[1]) {
				t.Errorf("step %d: %s is %v, want %v", step, name, pair[0], pair[1])
			}
		}
	}
}

func TestOldLogProbsFollowTheStaleness(t *testing.T) {
	for _, c := range []struct {
		setting   string
		staleness int
		want      string
	}{
		{"auto", 0, gpuworker.OldSampled},
		{"auto", 2, gpuworker.OldRecomputed},
		{"sampled", 2, gpuworker.OldSampled},
		{"recomputed", 0, gpuworker.OldRecomputed},
	} {
		flags := gpuworker.TrainingFlags{OldLogProbs: c.setting, ProblemsPerUpdate: 1}
		if got := flags.Hyperparameters(events.RoleCode, 1, 1, c.staleness).OldProbs; got != c.want {
			t.Errorf("--old-log-probs %s with staleness %d: %s, want %s", c.setting, c.staleness, got, c.want)
		}
	}
}
