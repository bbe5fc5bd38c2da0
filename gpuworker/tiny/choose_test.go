package tiny

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"codea1/gpuworker"
	"codea1/gpuworker/tiny/qwen2"
)

// frequencies draws many times from four tokens with probabilities .5, .25, .15 and
// .1 at temperature 1.
func frequencies(t *testing.T, p gpuworker.SamplingParams) [4]float64 {
	t.Helper()
	logits := make([]float32, 4)
	for i, prob := range []float64{0.15, 0.5, 0.1, 0.25} {
		logits[i] = float32(math.Log(prob)) + 3
	}
	c := newChooser(p, 4)
	rng := rand.New(rand.NewPCG(1, 2))
	var seen [4]float64
	const draws = 20000
	for range draws {
		id, logProb, err := c.choose(logits, rng)
		if err != nil {
			t.Fatal(err)
		}
		if p.Temperature == 1 && math.Abs(float64(logProb-(logits[id]-3))) > 1e-5 {
			t.Fatalf("log-prob %g of token %d", logProb, id)
		}
		seen[id] += 1.0 / draws
	}
	return seen
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		params gpuworker.SamplingParams
		want   [4]float64
	}{
		{gpuworker.SamplingParams{Temperature: 1, TopP: 1}, [4]float64{0.15, 0.5, 0.1, 0.25}},
		{gpuworker.SamplingParams{Temperature: 1, TopP: 1, TopK: 2}, [4]float64{0, 2.0 / 3, 0, 1.0 / 3}},
		{gpuworker.SamplingParams{Temperature: 1, TopP: 1, TopK: 9}, [4]float64{0.15, 0.5, 0.1, 0.25}},
		{gpuworker.SamplingParams{Temperature: 1, TopP: 0.7}, [4]float64{0, 2.0 / 3, 0, 1.0 / 3}},
		{gpuworker.SamplingParams{Temperature: 1, TopP: 0.8}, [4]float64{0.15 / 0.9, 0.5 / 0.9, 0, 0.25 / 0.9}},
		{gpuworker.SamplingParams{Temperature: 1, TopP: 0.6, TopK: 2}, [4]float64{0, 1, 0, 0}},
		{gpuworker.SamplingParams{Temperature: 0.01, TopP: 1}, [4]float64{0, 1, 0, 0}},
		{gpuworker.SamplingParams{Temperature: 1e6, TopP: 1}, [4]float64{0.25, 0.25, 0.25, 0.25}},
	} {
		got := frequencies(t, c.params)
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 0.015 {
				t.Errorf("%+v: frequencies %.3f, want %.3f", c.params, got, c.want)
				break
			}
		}
	}
}

func TestChooseRefusesNaN(t *testing.T) {
	c := newChooser(gpuworker.SamplingParams{Temperature: 1, TopP: 1}, 2)
	_, _, err := c.choose([]float32{1, float32(math.NaN())}, rand.New(rand.NewPCG(1, 1)))
	if !errors.Is(err, ErrDiverged) {
		t.Errorf("error %v", err)
	}
}

// The decode loop runs for every token and must not allocate.
func TestDecodeStepDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	e := newTestEngine(t, shape, 1)
	p := freely
	p.MaxTokens = 200
	p.TopP, p.TopK = 0.9, 100
	d := e.newDecoding(p, 2)
	for slot := range 2 {
		s := &sequence{prompt: []int32{1, 2, 3}, rng: rand.New(rand.NewPCG(uint64(slot), 1))}
		if err := d.enter(slot, s, qwen2.NewPass(e.current.net)); err != nil {
			t.Fatal(err)
		}
	}
	allocated := testing.AllocsPerRun(50, func() {
		d.gather()
		if len(d.batch) == 0 {
			t.Fatal("both sequences ended early")
		}
		if err := d.step(); err != nil {
			t.Fatal(err)
		}
	})
	if allocated > 0 {
		t.Errorf("%g allocations per step", allocated)
	}
}
