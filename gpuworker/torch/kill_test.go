package torch

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/gpuworker"
	"codea1/gpuworker/tiny/safetensors"
)

func weights(t *testing.T, dir string) map[string][]float32 {
	t.Helper()
	out := map[string][]float32{}
	err := safetensors.ReadModel(os.DirFS(dir), func(tensor safetensors.Tensor) ([]float32, error) {
		size := 1
		for _, n := range tensor.Shape {
			size *= n
		}
		out[tensor.Name] = make([]float32, size)
		return out[tensor.Name], nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// killer kills the child, or a rank that the child started, with SIGKILL during the
// operation that it is set to. As the log of the child it learns the process IDs of
// the ranks.
type killer struct {
	during atomic.Value // operation; empty: none
	after  atomic.Int64 // frames of it
	rank   atomic.Int64 // to kill; 0 is the child
	pid    atomic.Int64 // of rank 1
	kills  atomic.Int64
}

var rankStarted = regexp.MustCompile(`msg="rank started" .*pid=(\d+) rank=1\b`)

func (k *killer) Write(line []byte) (int, error) {
	if found := rankStarted.FindSubmatch(line); found != nil {
		pid, err := strconv.ParseInt(string(found[1]), 10, 64)
		if err != nil {
			return 0, err
		}
		k.pid.Store(pid)
	}
	return len(line), nil
}

func (k *killer) watch(c *child, kind, op string) {
	if kind == kindProgress && k.during.Load() == op && k.after.Add(-1) < 0 {
		k.during.Store("")
		victim := c.command.Process
		if k.rank.Load() != 0 {
			victim, _ = os.FindProcess(int(k.pid.Load()))
		}
		if victim.Kill() == nil {
			k.kills.Add(1)
		}
	}
}

// moment is that of a kill: in the next call of an operation, after a number of its
// progress frames.
type moment struct {
	op    string
	after int
	rank  int
}

func (k *killer) next(m moment) {
	k.after.Store(int64(m.after))
	k.rank.Store(int64(m.rank))
	k.during.Store(m.op)
}

// lesson trains one step as a trainer does, and begins again at the checkpoint before
// it when the engine lost its state. It returns the SHA-256 of the weights.
func lesson(t *testing.T, e *Engine, from, to string, sequences []gpuworker.Sequence) [sha256.Size]byte {
	t.Helper()
	config := gpuworker.UpdateConfig{
		ClipLow: 0.2, ClipHigh: 0.28, DualClip: 10, LogRatioClamp: 20, KLCoef: 0.001, Temperature: 1,
		LearningRate: 1e-3, WeightDecay: 0.1, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, GradClip: 1,
	}
	once := func() error {
		if err := errors.Join(os.RemoveAll(to), os.Mkdir(to, 0o755)); err != nil {
			return err
		}
		half := len(sequences) / 2
		for _, batch := range [][]gpuworker.Sequence{sequences[:half], sequences[half:]} {
			reference, err := e.LogProbs(t.Context(), gpuworker.Reference, batch, 1)
			if err != nil {
				return err
			}
			for i := range batch {
				batch[i].RefProbs = reference[i]
			}
			if _, err := e.Update(t.Context(), batch, config); err != nil {
				return err
			}
		}
		return e.Save(t.Context(), to)
	}
	for {
		err := once()
		if errors.Is(err, gpuworker.ErrStateLost) {
			if err = errors.Join(e.Load(t.Context(), from), e.LoadReference(t.Context(), from)); err == nil {
				continue
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(filepath.Join(to, "model.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		return sha256.Sum256(raw)
	}
}

// A child that is killed during any operation changes neither completions nor
// weights. CODEA1_KILLS=30 kills it 30 times, in all operations in turn.
func TestKilledChildChangesNothing(t *testing.T) {
	moments := []moment{{op: opSample, after: 2}, {op: opUpdate}, {op: opSave, after: 2}}
	if repeated() > 0 || os.Getenv("CODEA1_TEST_THOROUGH") == "1" {
		moments = append(moments, []moment{
			{op: opEncode}, {op: opSample}, {op: opLogProbs}, {op: opSave}, {op: opSave, after: 4}, {op: opLoad}, {op: opLoadReference}, {op: opLoadWeights},
		}...)
	}
	changeNothing(t, 1, moments)
}

// Nor does a rank of a training on two GPUs: its end is the end of the child.
func TestKilledRankChangesNothing(t *testing.T) {
	moments := []moment{{op: opUpdate, rank: 1}}
	if repeated() > 0 {
		moments = append(moments, moment{op: opSave, after: 2, rank: 1}, moment{op: opUpdate}, moment{op: opLogProbs, rank: 1})
	}
	changeNothing(t, 2, moments)
}

// repeated is the number of kills that CODEA1_KILLS asks for.
func repeated() int {
	n, _ := strconv.Atoi(os.Getenv("CODEA1_KILLS"))
	return n
}

// changeNothing trains on a number of GPUs with kills at moments, and compares with an
// undisturbed training.
func changeNothing(t *testing.T, gpus int, moments []moment) {
	t.Helper()
	python(t)
	start := small(t)
	kills := new(killer)
	kills.during.Store("")
	e := open(t, Options{Dir: start, TrainGPUs: gpus, watch: kills.watch, Logger: logTo(io.MultiWriter(kills, t.Output()))})
	params := gpuworker.SamplingParams{Temperature: 1, TopP: 1, MaxTokens: 100}
	sample := func() ([][]events.Completion, []gpuworker.Sequence) {
		prompt, err := e.EncodePrompt([]gpuworker.Message{{Role: "user", Content: "Return the sum of xs."}})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := e.Sample(t.Context(), []gpuworker.SampleRequest{{Prompt: prompt, Seeds: []uint64{1, 2, 3, 4}}}, params)
		if err != nil {
			t.Fatal(err)
		}
		var sequences []gpuworker.Sequence
		for i, c := range rows[0] {
			sequences = append(sequences, gpuworker.Sequence{Prompt: prompt, Tokens: c.Tokens, OldProbs: c.LogProbs, Advantage: []float64{1, -1}[i%2]})
		}
		return rows, sequences
	}
	load := func() {
		if err := errors.Join(e.Load(t.Context(), start), e.LoadReference(t.Context(), start), e.LoadWeights(t.Context(), start)); err != nil {
			t.Fatal(err)
		}
	}

	// Undisturbed.
	load()
	wantRows, sequences := sample()
	dir := filepath.Join(t.TempDir(), "v1")
	want := lesson(t, e, start, dir, sequences)
	if err := e.LoadWeights(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	wantNext, _ := sample()
	if gocmp.Equal(wantRows, wantNext) {
		t.Fatal("the training changes no completion, the test can see nothing")
	}

	for i := range cmp.Or(repeated(), len(moments)) {
		m := moments[i%len(moments)]
		before := kills.kills.Load()
		kills.next(m)
		load()
		rows, sequences := sample()
		if d := gocmp.Diff(wantRows, rows); d != "" {
			t.Fatalf("rank %d killed in %s: the completions differ:\n%s", m.rank, m.op, d)
		}
		if got := lesson(t, e, start, dir, sequences); got != want {
			t.Fatalf("rank %d killed in %s: the weights differ", m.rank, m.op)
		}
		if err := e.LoadWeights(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		if rows, _ := sample(); !gocmp.Equal(rows, wantNext) {
			t.Fatalf("killed in %s: the completions of the trained weights differ", m.op)
		}
		if kills.kills.Load() != before+1 {
			t.Errorf("no kill in %s after %d frames", m.op, m.after)
		}
	}
	if e.started != int(kills.kills.Load())+1 {
		t.Errorf("%d children after %d kills", e.started, kills.kills.Load())
	}
	t.Logf("%d kills, %d children", kills.kills.Load(), e.started)
}

// A sampler keeps its checkpoint while the learner trains on, and shares the
// learner's weights again when it loads the saved ones.
func TestSamplerKeepsItsCheckpointDuringTraining(t *testing.T) {
	python(t)
	start := small(t)
	e := open(t, Options{Dir: start})
	if err := errors.Join(e.Load(t.Context(), start), e.LoadReference(t.Context(), start)); err != nil {
		t.Fatal(err)
	}
	prompt, err := e.EncodePrompt(chats[0])
	if err != nil {
		t.Fatal(err)
	}
	sample := func() []events.Completion {
		rows, err := e.Sample(t.Context(), []gpuworker.SampleRequest{{Prompt: prompt, Seeds: []uint64{1, 2, 3, 4}}},
			gpuworker.SamplingParams{Temperature: 1, TopP: 1, MaxTokens: 40})
		if err != nil {
			t.Fatal(err)
		}
		return rows[0]
	}
	before := sample()
	var sequences []gpuworker.Sequence
	for i, c := range before {
		sequences = append(sequences, gpuworker.Sequence{Prompt: prompt, Tokens: c.Tokens, OldProbs: c.LogProbs, Advantage: []float64{1, -1}[i%2]})
	}
	dir := filepath.Join(t.TempDir(), "v1")
	lesson(t, e, start, dir, sequences)
	if d := gocmp.Diff(before, sample()); d != "" {
		t.Errorf("training changed the completions of the checkpoint before it:\n%s", d)
	}
	renamed := dir + "-renamed"
	if err := os.Rename(dir, renamed); err != nil {
		t.Fatal(err)
	}
	if err := e.LoadWeights(t.Context(), renamed); err != nil {
		t.Fatal(err)
	}
	after := sample()
	if gocmp.Equal(before, after) {
		t.Error("the sampler kept the old weights")
	}
	other := open(t, Options{Dir: renamed})
	rows, err := other.Sample(t.Context(), []gpuworker.SampleRequest{{Prompt: prompt, Seeds: []uint64{1, 2, 3, 4}}},
		gpuworker.SamplingParams{Temperature: 1, TopP: 1, MaxTokens: 40})
	if err != nil {
		t.Fatal(err)
	}
	if d := gocmp.Diff(rows[0], after); d != "" {
		t.Errorf("the saved checkpoint gives other completions than the learner's weights:\n%s", d)
	}
}
