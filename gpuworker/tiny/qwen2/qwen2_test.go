package qwen2

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"codea1/gpuworker/tiny/kernel"
)

func tinyConfig(tied bool) Config {
	return Config{
		Vocabulary: 23, Hidden: 12, Layers: 2, Heads: 4, KVHeads: 2, HeadSize: 4, MLP: 18, Positions: 64,
		RopeTheta: 10000, NormEpsilon: 1e-6, TieEmbeddings: tied, InitStd: 0.3,
	}
}

// newTiny draws weights that differ much from initial ones, also norms and biases.
func newTiny(t testing.TB, c Config, seed uint64) *Network {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	w := NewWeights(c)
	w.Initialize(seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, tensor := range w.Tensors {
		if !tensor.Matrix() {
			for i := range tensor.Data {
				tensor.Data[i] += float32(rng.NormFloat64() * 0.2)
			}
		}
	}
	n := NewNetwork(w)
	n.Pack()
	n.PackBackward()
	return n
}

func randomTokens(rng *rand.Rand, n, vocabulary int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(rng.IntN(vocabulary))
	}
	return out
}

func testGroup(c Config) Group {
	rng := rand.New(rand.NewPCG(5, 5))
	g := Group{Prompt: randomTokens(rng, 5, c.Vocabulary)}
	for _, n := range []int{6, 1, 3} {
		g.Responses = append(g.Responses, randomTokens(rng, n, c.Vocabulary))
	}
	return g
}

func collect(p *Pass, g Group, temperature float64) [][]float64 {
	out := make([][]float64, len(g.Responses))
	p.LogProbs(g, temperature, func(s Score) { out[s.Response] = append(out[s.Response], s.LogProb) })
	return out
}

func TestLogProbsMatchReference(t *testing.T) {
	for _, tied := range []bool{true, false} {
		for _, temperature := range []float64{1, 0.7} {
			n := newTiny(t, tinyConfig(tied), 1)
			r := newReference(n.Weights)
			g := testGroup(n.Weights.Config)
			for i, got := range collect(NewPass(n), g, temperature) {
				for j, want := range r.logProbs(g.Prompt, g.Responses[i], temperature) {
					if math.Abs(got[j]-want) > 2e-5 {
						t.Errorf("tied %v, temperature %g, response %d, token %d: %.7f, want %.7f", tied, temperature, i, j, got[j], want)
					}
				}
			}
		}
	}
}

// The loss of the gradient test is not linear and has a different weight for each
// token, so that every error is visible.
func testLoss(response, token int, logProb float64) (loss, slope float64) {
	w := 1 + 0.5*float64(response) - 0.3*float64(token)
	return w*logProb + 0.05*logProb*logProb, w + 0.1*logProb
}

func TestGradientsMatchFiniteDifferences(t *testing.T) {
	for _, tied := range []bool{true, false} {
		for _, temperature := range []float64{1, 1.3} {
			n := newTiny(t, tinyConfig(tied), 2)
			g := testGroup(n.Weights.Config)
			grad := NewWeights(n.Weights.Config)
			NewPass(n).Backward(g, temperature, grad, func(s Score) float64 {
				_, slope := testLoss(s.Response, s.Token, s.LogProb)
				return slope
			})
			r := newReference(n.Weights)
			loss := func() (sum float64) {
				for i, response := range g.Responses {
					for j, lp := range r.logProbs(g.Prompt, response, temperature) {
						l, _ := testLoss(i, j, lp)
						sum += l
					}
				}
				return sum
			}
			for _, tensor := range grad.Tensors {
				checkDifferences(t, tensor, r.tensors[tensor.Name], loss)
			}
		}
	}
}

// checkDifferences compares up to 12 entries spread over a tensor.
func checkDifferences(t *testing.T, got Tensor, values []float64, loss func() float64) {
	t.Helper()
	const step = 1e-5
	for k := range 12 {
		i := (k*len(values)/12 + 7*k) % len(values)
		kept := values[i]
		values[i] = kept + step
		up := loss()
		values[i] = kept - step
		down := loss()
		values[i] = kept
		want := (up - down) / (2 * step)
		if diff := math.Abs(float64(got.Data[i]) - want); diff > 1e-4*(1+math.Abs(want)) {
			t.Errorf("%s[%d]: gradient %.6f, want %.6f", got.Name, i, got.Data[i], want)
		}
	}
}

func TestEntropy(t *testing.T) {
	n := newTiny(t, tinyConfig(true), 3)
	g := testGroup(n.Weights.Config)
	r := newReference(n.Weights)
	NewPass(n).Backward(g, 0.8, NewWeights(n.Weights.Config), func(s Score) float64 {
		row := r.logits(slices.Concat(g.Prompt, g.Responses[s.Response][:s.Token]))[len(g.Prompt)+s.Token-1]
		for i := range row {
			row[i] /= 0.8
		}
		want := 0.0
		for _, p := range softmax(row) {
			want -= p * math.Log(p)
		}
		if math.Abs(s.Entropy-want) > 1e-5 {
			t.Errorf("entropy %.6f, want %.6f", s.Entropy, want)
		}
		return 0
	})
}

// A response has the same score with and without other responses.
func TestResponsesDoNotMix(t *testing.T) {
	n := newTiny(t, tinyConfig(true), 4)
	g := testGroup(n.Weights.Config)
	p := NewPass(n)
	together := collect(p, g, 0.9)
	for i, response := range g.Responses {
		single := collect(p, Group{Prompt: g.Prompt, Responses: [][]int32{response}}, 0.9)
		if !slices.Equal(single[0], together[i]) {
			t.Errorf("response %d: single %v, together %v", i, single[0], together[i])
		}
	}
}

func TestDecodeMatchesForward(t *testing.T) {
	n := newTiny(t, tinyConfig(true), 6)
	g := testGroup(n.Weights.Config)
	p := NewPass(n)
	want := collect(p, g, 1)

	var prefix Prefix
	p.Prefill(g.Prompt, &prefix)
	d := NewDecoder(n, len(g.Responses), 8)
	got := make([][]float64, len(g.Responses))
	score := func(r, token int, logits []float32) {
		row := slices.Clone(logits)
		_, logSum := kernel.SoftmaxInPlace(row)
		got[r] = append(got[r], float64(logits[g.Responses[r][token]]-logSum))
	}
	for r := range g.Responses {
		d.Start(r, &prefix)
		score(r, 0, prefix.Logits)
	}
	for token := 0; ; token++ {
		var batch []int
		var next []int32
		for r, response := range g.Responses {
			if token+1 < len(response) {
				batch, next = append(batch, r), append(next, response[token])
			}
		}
		if len(batch) == 0 {
			break
		}
		logits := d.Step(batch, next)
		for i, r := range batch {
			score(r, token+1, logits[i*n.Weights.Config.Vocabulary:][:n.Weights.Config.Vocabulary])
		}
	}
	for r := range want {
		for i := range want[r] {
			if math.Abs(got[r][i]-want[r][i]) > 1e-5 {
				t.Errorf("response %d token %d: decoded %.7f, forward %.7f", r, i, got[r][i], want[r][i])
			}
		}
	}
}

// A sequence decodes to the same bits by itself, with others of its prompt, and
// with those of other prompts.
func TestBatchOrderChangesNothing(t *testing.T) {
	n := newTiny(t, tinyConfig(true), 8)
	rng := rand.New(rand.NewPCG(8, 8))
	prefixes := make([]Prefix, 2)
	for i := range prefixes {
		NewPass(n).Prefill(randomTokens(rng, 4+5*i, 23), &prefixes[i])
	}
	tokens := [][]int32{randomTokens(rng, 6, 23), randomTokens(rng, 6, 23), randomTokens(rng, 6, 23), randomTokens(rng, 6, 23)}
	decode := func(batch []int) map[int][]float32 {
		d := NewDecoder(n, len(tokens), 6)
		for _, s := range batch {
			d.Start(s, &prefixes[s%2])
		}
		last := make(map[int][]float32)
		for step := range 6 {
			next := make([]int32, len(batch))
			for i, s := range batch {
				next[i] = tokens[s][step]
			}
			logits := d.Step(batch, next)
			for i, s := range batch {
				last[s] = slices.Clone(logits[i*23:][:23])
			}
		}
		return last
	}
	want := decode([]int{0, 2, 1, 3}) // neighbours share a prompt
	for _, batch := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {2}, {1, 3}} {
		for s, logits := range decode(batch) {
			if !slices.Equal(logits, want[s]) {
				t.Errorf("batch %v changes slot %d", batch, s)
			}
		}
	}
}

func TestStepDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	n := newTiny(t, tinyConfig(true), 7)
	var prefix Prefix
	NewPass(n).Prefill([]int32{1, 2, 3}, &prefix)
	d := NewDecoder(n, 2, 40)
	d.Start(0, &prefix)
	d.Start(1, &prefix)
	batch, tokens := []int{0, 1}, []int32{4, 5}
	if allocated := testing.AllocsPerRun(20, func() { d.Step(batch, tokens) }); allocated > 0 {
		t.Errorf("%g allocations", allocated)
	}
}

func TestConfig(t *testing.T) {
	c := tinyConfig(true)
	c.EndOfTurn, c.EndOfText = 5, 3
	data, err := c.MarshalFile("float32")
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseConfig(data)
	if err != nil || again != c {
		t.Errorf("%+v became %+v, error %v", c, again, err)
	}
	for name, text := range map[string]string{
		"not JSON":    `{`,
		"llama":       `{"model_type":"llama"}`,
		"no sizes":    `{"model_type":"qwen2"}`,
		"rope":        `{"model_type":"qwen2","rope_scaling":{"type":"yarn"}}`,
		"odd head":    fmt.Sprintf(`{"model_type":"qwen2","vocab_size":9,"hidden_size":%d,"num_hidden_layers":1,"num_attention_heads":1,"intermediate_size":8}`, 7),
		"too large":   `{"model_type":"qwen2","vocab_size":1000000,"hidden_size":100000,"num_hidden_layers":200,"num_attention_heads":8,"intermediate_size":100000}`,
		"uneven":      `{"model_type":"qwen2","vocab_size":9,"hidden_size":12,"num_hidden_layers":1,"num_attention_heads":3,"num_key_value_heads":2,"intermediate_size":8}`,
		"bad eos":     `{"model_type":"qwen2","eos_token_id":"x"}`,
		"sliding":     `{"model_type":"qwen2","use_sliding_window":true}`,
		"yarn in v5":  `{"model_type":"qwen2","rope_parameters":{"rope_type":"yarn","rope_theta":1}}`,
		"gelu":        `{"model_type":"qwen2","hidden_act":"gelu"}`,
		"NaN in json": `{"model_type":"qwen2","rms_norm_eps":NaN}`,
	} {
		if _, err := ParseConfig([]byte(text)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// benchConfig is the shape of the embedded checkpoints.
var benchConfig = Config{
	Vocabulary: 1024, Hidden: 128, Layers: 4, Heads: 4, KVHeads: 2, HeadSize: 32, MLP: 352, Positions: 1024,
	RopeTheta: 10000, NormEpsilon: 1e-6, TieEmbeddings: true, InitStd: 0.02,
}

// One goroutine; tokens count prompt and responses.
func BenchmarkBackward(b *testing.B) {
	n := newTiny(b, benchConfig, 1)
	rng := rand.New(rand.NewPCG(1, 1))
	g := Group{Prompt: randomTokens(rng, 90, 1024), Responses: [][]int32{randomTokens(rng, 60, 1024)}}
	grad, p := NewWeights(benchConfig), NewPass(n)
	for b.Loop() {
		p.Backward(g, 1, grad, func(Score) float64 { return -1 })
	}
	b.ReportMetric(float64(g.Rows()*b.N)/b.Elapsed().Seconds(), "tokens/s")
}

func BenchmarkStep(b *testing.B) {
	n := newTiny(b, benchConfig, 1)
	rng := rand.New(rand.NewPCG(1, 1))
	for _, slots := range []int{1, 8, 32, 64} {
		b.Run(fmt.Sprintf("batch=%d", slots), func(b *testing.B) {
			var prefix Prefix
			NewPass(n).Prefill(randomTokens(rng, 90, 1024), &prefix)
			d := NewDecoder(n, slots, 64)
			batch := make([]int, slots)
			for i := range batch {
				batch[i] = i
			}
			tokens := randomTokens(rng, slots, 1024)
			for i := 0; b.Loop(); i++ {
				if i%64 == 0 {
					for _, s := range batch {
						d.Start(s, &prefix)
					}
				}
				d.Step(batch, tokens)
			}
			b.ReportMetric(float64(slots*b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}
