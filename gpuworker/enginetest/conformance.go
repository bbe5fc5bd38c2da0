package enginetest

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/gpuworker"
)

// Engine creates samplers and learners of the tested engine from one checkpoint.
type Engine struct {
	NewSampler func(t *testing.T) gpuworker.Sampler
	NewLearner func(t *testing.T) gpuworker.Learner
}

const (
	maxTokens = 12
	// tolerance is the largest difference in nats between the log-probs of a
	// token from a sampler and from a learner.
	tolerance = 1e-4
)

// Run checks that an engine keeps the contract of gpuworker.Sampler and
// gpuworker.Learner. It closes all samplers and learners when t ends.
func Run(t *testing.T, engine Engine) {
	t.Run("prompts", func(t *testing.T) { testPrompts(t, engine) })
	t.Run("completions", func(t *testing.T) { testCompletions(t, engine) })
	t.Run("seeds", func(t *testing.T) { testSeeds(t, engine) })
	t.Run("batch independence", func(t *testing.T) { testBatchIndependence(t, engine) })
	t.Run("cancelled sampling", func(t *testing.T) { testCancelled(t, engine) })
	t.Run("log-probs agree", func(t *testing.T) { testLogProbsAgree(t, engine) })
	t.Run("update direction", func(t *testing.T) { testUpdateDirection(t, engine) })
	t.Run("first update is on policy", func(t *testing.T) { testOnPolicy(t, engine) })
	t.Run("weights of tokens", func(t *testing.T) { testWeights(t, engine) })
	t.Run("supervised loss falls", func(t *testing.T) { testSupervised(t, engine) })
	t.Run("same calls, same weights", func(t *testing.T) { testDeterminism(t, engine) })
	t.Run("save and resume", func(t *testing.T) { testResume(t, engine) })
	t.Run("sampler loads trained weights", func(t *testing.T) { testLoadWeights(t, engine) })
	t.Run("reference stays", func(t *testing.T) { testReference(t, engine) })
	t.Run("missing checkpoint", func(t *testing.T) { testMissingCheckpoint(t, engine) })
}

func (e Engine) sampler(t *testing.T) gpuworker.Sampler {
	t.Helper()
	s := e.NewSampler(t)
	t.Cleanup(func() { noError(t, "close sampler", s.Close()) })
	return s
}

func (e Engine) learner(t *testing.T) gpuworker.Learner {
	t.Helper()
	l := e.NewLearner(t)
	t.Cleanup(func() { noError(t, "close learner", l.Close()) })
	return l
}

func update() gpuworker.UpdateConfig {
	return gpuworker.UpdateConfig{
		Loss: gpuworker.LossPPO, ClipLow: 0.2, ClipHigh: 0.28, DualClip: 10, LogRatioClamp: 20,
		Temperature: 1, LearningRate: 1e-3, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, GradClip: 1,
	}
}

func params(temperature float64) gpuworker.SamplingParams {
	return gpuworker.SamplingParams{Temperature: temperature, TopP: 1, MaxTokens: maxTokens}
}

// requests returns three prompts of different lengths with different numbers of
// seeds.
func requests(t *testing.T, s gpuworker.Sampler) []gpuworker.SampleRequest {
	t.Helper()
	var out []gpuworker.SampleRequest
	for i, content := range []string{"a", "Return the sum of a list of numbers.", "Reverse a string.\n\nIt may be empty."} {
		prompt, err := s.EncodePrompt([]gpuworker.Message{{Role: "user", Content: content}})
		noError(t, "encode prompt", err)
		r := gpuworker.SampleRequest{Prompt: prompt}
		for j := range i + 2 {
			r.Seeds = append(r.Seeds, uint64(100*i+j+1))
		}
		out = append(out, r)
	}
	return out
}

func sample(t *testing.T, s gpuworker.Sampler, r []gpuworker.SampleRequest, temperature float64) [][]events.Completion {
	t.Helper()
	out, err := s.Sample(t.Context(), r, params(temperature))
	noError(t, "sample", err)
	if len(out) != len(r) {
		t.Fatalf("%d results for %d requests", len(out), len(r))
	}
	for i := range r {
		if len(out[i]) != len(r[i].Seeds) {
			t.Fatalf("request %d: %d completions for %d seeds", i, len(out[i]), len(r[i].Seeds))
		}
	}
	return out
}

// rollouts samples training sequences with positive and negative advantages.
func rollouts(t *testing.T, s gpuworker.Sampler) []gpuworker.Sequence {
	t.Helper()
	r := requests(t, s)
	var out []gpuworker.Sequence
	for i, row := range sample(t, s, r, 1) {
		for j, c := range row {
			out = append(out, gpuworker.Sequence{
				Prompt: r[i].Prompt, Tokens: c.Tokens, OldProbs: c.LogProbs, Advantage: []float64{1, -1}[j%2],
			})
		}
	}
	return out
}

func testPrompts(t *testing.T, e Engine) {
	s := e.sampler(t)
	first, again := requests(t, s), requests(t, s)
	if d := cmp.Diff(first, again); d != "" {
		t.Errorf("the same messages encode differently:\n%s", d)
	}
	for i := range first {
		if len(first[i].Prompt) == 0 {
			t.Errorf("prompt %d has no tokens", i)
		}
		for j := range first[:i] {
			if cmp.Equal(first[i].Prompt, first[j].Prompt) {
				t.Errorf("prompts %d and %d encode the same", i, j)
			}
		}
	}
}

func testCompletions(t *testing.T, e Engine) {
	s := e.sampler(t)
	for i, row := range sample(t, s, requests(t, s), 1) {
		for j, c := range row {
			if len(c.Tokens) == 0 || len(c.Tokens) > maxTokens || len(c.LogProbs) != len(c.Tokens) {
				t.Errorf("completion %d/%d: %d tokens, %d log-probs, limit %d", i, j, len(c.Tokens), len(c.LogProbs), maxTokens)
			}
			switch c.Finish {
			case events.FinishStop:
			case events.FinishLength:
				if len(c.Tokens) != maxTokens {
					t.Errorf("completion %d/%d: cut off by length at %d tokens of %d", i, j, len(c.Tokens), maxTokens)
				}
			default:
				t.Errorf("completion %d/%d: finish is %q", i, j, c.Finish)
			}
			for k, p := range c.LogProbs {
				if !(p <= 0) || math.IsInf(float64(p), 0) {
					t.Errorf("completion %d/%d: log-prob %d is %v", i, j, k, p)
				}
			}
		}
	}
}

func testSeeds(t *testing.T, e Engine) {
	s := e.sampler(t)
	r := requests(t, s)[:1]
	r[0].Seeds = []uint64{7, 8, 9, 10, 7}
	row := sample(t, s, r, 1)[0]
	if d := cmp.Diff(row[0], row[4]); d != "" {
		t.Errorf("one seed gave two completions:\n%s", d)
	}
	different := false
	for _, c := range row[1:4] {
		different = different || !cmp.Equal(c.Tokens, row[0].Tokens)
	}
	if !different {
		t.Error("four seeds gave the same completion")
	}
}

func testBatchIndependence(t *testing.T, e Engine) {
	s := e.sampler(t)
	r := requests(t, s)
	together := sample(t, s, r, 1)
	reversed := sample(t, s, []gpuworker.SampleRequest{r[2], r[1], r[0]}, 1)
	for i := range r {
		if d := cmp.Diff(together[i], reversed[2-i]); d != "" {
			t.Errorf("request %d depends on its position in the batch:\n%s", i, d)
		}
		for j, seed := range r[i].Seeds {
			single := sample(t, s, []gpuworker.SampleRequest{{Prompt: r[i].Prompt, Seeds: []uint64{seed}}}, 1)[0][0]
			if d := cmp.Diff(together[i][j], single); d != "" {
				t.Errorf("completion %d/%d depends on the other requests of the batch:\n%s", i, j, d)
			}
		}
	}
}

func testCancelled(t *testing.T, e Engine) {
	s := e.sampler(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Sample(ctx, requests(t, s), params(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled Sample returned %v", err)
	}
}

func testLogProbsAgree(t *testing.T, e Engine) {
	s, l := e.sampler(t), e.learner(t)
	r := requests(t, s)
	for _, temperature := range []float64{1, 0.6} {
		for i, row := range sample(t, s, r, temperature) {
			for j, c := range row {
				sequence := gpuworker.Sequence{Prompt: r[i].Prompt, Tokens: c.Tokens}
				scored := logProbs(t, l, gpuworker.Current, []gpuworker.Sequence{sequence}, temperature)[0]
				if d := farthest(scored, c.LogProbs); d > tolerance {
					t.Errorf("completion %d/%d at temperature %v: sampler and learner are %v nats apart", i, j, temperature, d)
				}
			}
		}
	}
}

func testUpdateDirection(t *testing.T, e Engine) {
	s, l := e.sampler(t), e.learner(t)
	for _, advantage := range []float64{1, -1} {
		one := rollouts(t, s)[:1]
		one[0].Advantage = advantage
		before := sum(logProbs(t, l, gpuworker.Current, one, 1)[0])
		_, err := l.Update(t.Context(), one, update())
		noError(t, "update", err)
		after := sum(logProbs(t, l, gpuworker.Current, one, 1)[0])
		if (after-before)*advantage <= 0 {
			t.Errorf("advantage %v moved the response's log-prob from %v to %v", advantage, before, after)
		}
		l = e.learner(t)
	}
}

func testOnPolicy(t *testing.T, e Engine) {
	s, l := e.sampler(t), e.learner(t)
	sequences := rollouts(t, s)
	noError(t, "load reference", l.LoadReference(t.Context(), saved(t, l)))
	tokens := 0
	for i, p := range logProbs(t, l, gpuworker.Reference, sequences, 1) {
		sequences[i].RefProbs = p
		tokens += len(p)
	}
	config := update()
	config.KLCoef = 0.001
	stats, err := l.Update(t.Context(), sequences, config)
	noError(t, "update", err)
	if math.Abs(stats.RatioMean-1) > tolerance || stats.ClipFraction != 0 || math.Abs(stats.KL) > tolerance {
		t.Errorf("on policy: ratio %v, clipped %v, KL %v", stats.RatioMean, stats.ClipFraction, stats.KL)
	}
	if stats.Tokens != tokens || !(stats.GradNorm > 0) || !(stats.Entropy > 0) {
		t.Errorf("%d tokens of %d, gradient norm %v, entropy %v", stats.Tokens, tokens, stats.GradNorm, stats.Entropy)
	}
}

// testWeights checks that the weights of tokens scale the surrogate, and nothing
// else: equal weights scale loss and gradient, and with weights of 0 only the KL
// term is left.
func testWeights(t *testing.T, e Engine) {
	sequences := rollouts(t, e.sampler(t))
	for i := range sequences {
		sequences[i].RefProbs = sequences[i].OldProbs
	}
	config := update()
	config.KLCoef = 0.5 // the policy is the reference: the term and its gradient are 0
	at := func(weight float32) gpuworker.UpdateStats {
		weighted := slices.Clone(sequences)
		for i := range weighted {
			weighted[i].Weights = slices.Repeat([]float32{weight}, len(weighted[i].Tokens))
		}
		stats, err := e.learner(t).Update(t.Context(), weighted, config)
		noError(t, "update", err)
		return stats
	}
	plain, err := e.learner(t).Update(t.Context(), sequences, config)
	noError(t, "update", err)
	for _, weight := range []float32{0, 0.5, 1} {
		got, w := at(weight), float64(weight)
		if math.Abs(got.Loss-w*plain.Loss) > tolerance || math.Abs(got.GradNorm-w*plain.GradNorm) > tolerance*(1+plain.GradNorm) {
			t.Errorf("weight %v: loss %v, gradient norm %v; without weights %v and %v", weight, got.Loss, got.GradNorm, plain.Loss, plain.GradNorm)
		}
	}
	for i := range sequences { // away from the reference
		sequences[i].RefProbs = slices.Clone(sequences[i].OldProbs)
		for j := range sequences[i].RefProbs {
			sequences[i].RefProbs[j] -= 0.5
		}
	}
	if got := at(0); !(got.KL > 0.01) || math.Abs(got.Loss-config.KLCoef*got.KL) > tolerance || !(got.GradNorm > 0) {
		t.Errorf("weight 0 away from the reference: loss %v, KL %v, gradient norm %v", got.Loss, got.KL, got.GradNorm)
	}
}

func testSupervised(t *testing.T, e Engine) {
	s, l := e.sampler(t), e.learner(t)
	var sequences []gpuworker.Sequence
	for _, r := range rollouts(t, s) {
		sequences = append(sequences, gpuworker.Sequence{Prompt: r.Prompt, Tokens: r.Tokens})
	}
	config := update()
	config.Loss = gpuworker.LossSFT
	var losses []float64
	for range 4 {
		stats, err := l.Update(t.Context(), sequences, config)
		noError(t, "update", err)
		losses = append(losses, stats.Loss)
	}
	if !(losses[3] < losses[0]) {
		t.Errorf("losses of four steps on the same text: %v", losses)
	}
}

func testDeterminism(t *testing.T, e Engine) {
	sequences := rollouts(t, e.sampler(t))
	var weights [2]string
	for i := range weights {
		l := e.learner(t)
		train(t, l, sequences[:4], sequences[4:])
		weights[i] = weightsOf(t, saved(t, l))
	}
	if weights[0] != weights[1] {
		t.Error("the same updates gave different weights")
	}
}

func testResume(t *testing.T, e Engine) {
	sequences := rollouts(t, e.sampler(t))
	through := e.learner(t)
	train(t, through, sequences[:4])
	dir := saved(t, through)
	train(t, through, sequences[4:])

	resumed := e.learner(t)
	noError(t, "load", resumed.Load(t.Context(), dir))
	train(t, resumed, sequences[4:])
	if weightsOf(t, saved(t, through)) != weightsOf(t, saved(t, resumed)) {
		t.Error("a resumed learner ends with other weights than one that never stopped")
	}
}

func testLoadWeights(t *testing.T, e Engine) {
	s, l := e.sampler(t), e.learner(t)
	train(t, l, rollouts(t, s))
	noError(t, "load weights", s.LoadWeights(t.Context(), saved(t, l)))
	sequences := rollouts(t, s)
	for i, scored := range logProbs(t, l, gpuworker.Current, sequences, 1) {
		if d := farthest(scored, sequences[i].OldProbs); d > tolerance {
			t.Errorf("sequence %d: sampler and learner are %v nats apart after LoadWeights", i, d)
		}
	}
}

func testReference(t *testing.T, e Engine) {
	s, l := e.sampler(t), e.learner(t)
	sequences := rollouts(t, s)
	noError(t, "load reference", l.LoadReference(t.Context(), saved(t, l)))
	before := logProbs(t, l, gpuworker.Reference, sequences, 1)
	train(t, l, sequences)
	if d := cmp.Diff(before, logProbs(t, l, gpuworker.Reference, sequences, 1)); d != "" {
		t.Errorf("an update moved the reference:\n%s", d)
	}
	noError(t, "load reference", l.LoadReference(t.Context(), saved(t, l)))
	current, reference := logProbs(t, l, gpuworker.Current, sequences, 1), logProbs(t, l, gpuworker.Reference, sequences, 1)
	for i := range current {
		if d := farthest(current[i], reference[i]); d > tolerance {
			t.Errorf("sequence %d: current and reference of the same checkpoint are %v nats apart", i, d)
		}
	}
}

func testMissingCheckpoint(t *testing.T, e Engine) {
	s, l := e.sampler(t), e.learner(t)
	missing := filepath.Join(t.TempDir(), "nothing-here")
	for name, err := range map[string]error{
		"LoadWeights":   s.LoadWeights(t.Context(), missing),
		"Load":          l.Load(t.Context(), missing),
		"LoadReference": l.LoadReference(t.Context(), missing),
	} {
		if err == nil {
			t.Errorf("%s of a missing directory succeeded", name)
		}
	}
}

func train(t *testing.T, l gpuworker.Learner, batches ...[]gpuworker.Sequence) {
	t.Helper()
	for _, b := range batches {
		_, err := l.Update(t.Context(), b, update())
		noError(t, "update", err)
	}
}

func saved(t *testing.T, l gpuworker.Learner) string {
	t.Helper()
	dir := t.TempDir()
	noError(t, "save", l.Save(t.Context(), dir))
	return dir
}

func weightsOf(t *testing.T, dir string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
	noError(t, "read weights", err)
	return string(raw)
}

func logProbs(t *testing.T, l gpuworker.Learner, policy gpuworker.Policy, sequences []gpuworker.Sequence, temperature float64) [][]float32 {
	t.Helper()
	out, err := l.LogProbs(t.Context(), policy, sequences, temperature)
	noError(t, "log-probs", err)
	return out
}

// farthest returns the largest difference, or infinity for different lengths.
func farthest(a, b []float32) float64 {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	most := 0.0
	for i := range a {
		most = max(most, math.Abs(float64(a[i])-float64(b[i])))
	}
	return most
}

func sum(v []float32) float64 {
	total := 0.0
	for _, x := range v {
		total += float64(x)
	}
	return total
}

func noError(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
