package tiny

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync"

	"codea1/gpuworker"
	"codea1/gpuworker/tiny/kernel"
	"codea1/gpuworker/tiny/qwen2"
	"codea1/gpuworker/tiny/tokenizer"
)

// Errors of the engine's calls.
var (
	ErrBadRequest  = gpuworker.ErrBadRequest
	ErrNoReference = errors.New("no reference policy is loaded")
	ErrMismatch    = errors.New("checkpoint of another model")
	ErrDiverged    = errors.New("the model's numbers are not finite")
)

// Engine is one policy on the CPU. In training it also has a reference policy
// and an optimizer. It is safe for concurrent use: calls that sample or score run
// concurrently, calls that change weights run one at a time.
type Engine struct {
	threads   int // goroutines of one call
	slots     int // sequences that a goroutine decodes together
	files     carried
	tokenizer *tokenizer.Tokenizer
	chat      chat

	mu        sync.RWMutex
	current   *model
	reference *model           // nil until LoadReference
	optimizer *optimizer       // nil until the first Update
	gradients []*qwen2.Weights // scratch of Update, one per shard
}

var (
	_ gpuworker.Sampler = (*Engine)(nil)
	_ gpuworker.Learner = (*Engine)(nil)
)

// model is a network with its passes. It keeps as many passes as were ever in use
// at once: the number of threads.
type model struct {
	net *qwen2.Network

	mu   sync.Mutex
	idle []*qwen2.Pass
}

func newModel(w *qwen2.Weights) *model {
	return &model{net: qwen2.NewNetwork(w)}
}

// takePass returns a pass for one goroutine. It is given back to returnPass.
func (m *model) takePass() *qwen2.Pass {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := len(m.idle) - 1
	if last < 0 {
		return qwen2.NewPass(m.net)
	}
	pass := m.idle[last]
	m.idle = m.idle[:last]
	return pass
}

func (m *model) returnPass(pass *qwen2.Pass) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.idle = append(m.idle, pass)
}

// Open opens a checkpoint directory: weights, tokenizer, and optimizer state if
// the directory has one.
func Open(dir string) (*Engine, error) {
	e, err := OpenFS(os.DirFS(dir))
	if err != nil {
		return nil, fmt.Errorf("checkpoint %s: %w", dir, err)
	}
	return e, nil
}

// OpenFS opens a checkpoint at the root of a file system, such as an embedded
// checkpoint.
func OpenFS(fsys fs.FS) (*Engine, error) {
	c, err := readCheckpoint(fsys, true)
	if err != nil {
		return nil, err
	}
	e, err := newEngine(c.files, c.tokenizer, c.weights)
	if err != nil {
		return nil, err
	}
	e.optimizer = c.optimizer
	return e, nil
}

// New creates an engine with a new model: weights of the shape drawn by seed,
// and files for the tokenizer. It sets the end tokens of shape and raises its
// vocabulary to the tokenizer's size.
func New(shape qwen2.Config, t *tokenizer.Tokenizer, seed uint64) (*Engine, error) {
	format, err := newChat(t)
	if err != nil {
		return nil, err
	}
	shape.Vocabulary = max(t.Size(), shape.Vocabulary)
	shape.EndOfText, shape.EndOfTurn = format.endOfText, format.turnEnd
	if err := shape.Validate(); err != nil {
		return nil, err
	}
	files, err := newFiles(t, format, shape.Positions)
	if err != nil {
		return nil, err
	}
	w := qwen2.NewWeights(shape)
	w.Initialize(seed)
	return newEngine(files, t, w)
}

func newEngine(files carried, t *tokenizer.Tokenizer, w *qwen2.Weights) (*Engine, error) {
	if err := kernel.Check(); err != nil {
		return nil, err
	}
	format, err := newChat(t)
	if err != nil {
		return nil, err
	}
	return &Engine{
		threads: runtime.GOMAXPROCS(0), slots: 32,
		files: files, tokenizer: t, chat: format, current: newModel(w),
	}, nil
}

// Parameters returns the number of trained parameters.
func (e *Engine) Parameters() int {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return len(e.current.net.Weights.Data)
}

// Config returns the shape of the model.
func (e *Engine) Config() qwen2.Config {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.current.net.Weights.Config
}

// ResetOptimizer discards the optimizer state. The next Update starts a new one.
func (e *Engine) ResetOptimizer() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.optimizer = nil
}

// Close implements gpuworker.Sampler and gpuworker.Learner. It does nothing,
// because the engine uses only memory.
func (e *Engine) Close() error { return nil }
