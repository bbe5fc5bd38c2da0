package torch

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"codea1/gpuworker"
	"codea1/gpuworker/enginetest"
	"codea1/gpuworker/tiny"
	"codea1/gpuworker/tiny/qwen2"
	"codea1/gpuworker/tiny/tokenizer"
)

// pythonVariable names a Python that has torch and the other libraries of
// codea1_torch. The tests that need one are skipped without it.
const pythonVariable = "CODEA1_TEST_TORCH_PYTHON"

func TestMain(m *testing.M) {
	if mode, ok := os.LookupEnv(childVariable); ok {
		fakeChild(mode)
		return
	}
	goleak.VerifyTestMain(m)
}

func logTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// python returns the Python of the tests. The child takes codea1_torch from this
// checkout.
func python(t testing.TB) string {
	t.Helper()
	path := os.Getenv(pythonVariable)
	if path == "" {
		t.Skipf("%s is not set", pythonVariable)
	}
	source, err := filepath.Abs("python")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", source)
	t.Setenv("OMP_NUM_THREADS", "1") // as many children as tests share the cores
	return path
}

// shape is that of a small model.
var shape = qwen2.Config{
	Hidden: 32, Layers: 2, Heads: 4, KVHeads: 2, HeadSize: 8, MLP: 48, Positions: 256,
	RopeTheta: 10000, NormEpsilon: 1e-6, TieEmbeddings: true, InitStd: 0.3,
}

func smallTokenizer(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	text, err := os.ReadFile("../tiny/tokenizer/testdata/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// small returns the directory of a checkpoint with small random weights.
func small(t testing.TB) string {
	t.Helper()
	e, err := tiny.New(shape, smallTokenizer(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := e.Save(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// open starts an engine on the CPU.
func open(t testing.TB, options Options) *Engine {
	t.Helper()
	options.Python, options.Device = python(t), "cpu"
	if options.Logger == nil {
		options.Logger = logTo(t.Output())
	}
	e, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// borrowed is an engine that Close returns to the others of a test: the start of a
// child takes seconds.
type borrowed struct {
	*Engine
	free *[]*Engine
}

// Close implements gpuworker.Sampler and gpuworker.Learner.
func (b borrowed) Close() error {
	*b.free = append(*b.free, b.Engine)
	return nil
}

func TestConformance(t *testing.T) {
	python(t)
	dir := small(t)
	var free []*Engine
	borrow := func(sub *testing.T) borrowed {
		if len(free) == 0 {
			free = append(free, open(t, Options{Dir: dir}))
		}
		e := free[0]
		free = free[1:]
		if err := errors.Join(e.Load(sub.Context(), dir), e.LoadWeights(sub.Context(), dir)); err != nil {
			sub.Fatal(err)
		}
		return borrowed{e, &free}
	}
	enginetest.Run(t, enginetest.Engine{
		NewSampler: func(t *testing.T) gpuworker.Sampler { return borrow(t) },
		NewLearner: func(t *testing.T) gpuworker.Learner { return borrow(t) },
	})
}
