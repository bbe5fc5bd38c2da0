package torch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"codea1/events/machine"
	"codea1/gpuworker"
)

// Engine is one policy of a run in a Python child. It is the sampler and the
// learner of the policy: both share one set of weights while both want the same
// checkpoint. It is safe for concurrent use; calls run one at a time.
//
// If the child dies, the next call starts another one. A call of the sampler is
// repeated. A call of the learner returns gpuworker.ErrStateLost, because the
// weights in training are lost, until Load loads a checkpoint.
type Engine struct {
	options Options
	dir     string // absolute

	busy chan struct{} // a lock that can be waited for until a context ends
	life context.Context
	end  context.CancelFunc

	// The holder of busy owns these.
	child   *child
	started int         // children so far
	deaths  map[job]int // in a row, without an end of the job between them
	sampled string      // checkpoint that the sampler loaded last; empty: dir
	trained int         // number of the child that has the learner's weights
	halved  int         // times that the ranks of a child had no memory for a micro-batch
}

var (
	_ gpuworker.Sampler = (*Engine)(nil)
	_ gpuworker.Learner = (*Engine)(nil)
)

// job is a kind of work that repeats itself after the death of a child. Deaths are
// counted until the job brings a result that lasts: completions, or a
// checkpoint. Otherwise a batch that always kills the child would be tried for
// ever.
type job string

const (
	sampling job = "sampling"
	training job = "training"
)

// Start starts the child and opens a checkpoint directory.
func Start(ctx context.Context, options Options) (*Engine, error) {
	options = options.withDefaults()
	dir, err := filepath.Abs(options.Dir)
	if err != nil {
		return nil, err
	}
	e := &Engine{options: options, dir: dir, busy: make(chan struct{}, 1), deaths: map[job]int{}, trained: 1}
	e.life, e.end = context.WithCancel(context.Background())
	if err := e.start(ctx); err != nil {
		e.end()
		return nil, fmt.Errorf("torch engine: %w", err)
	}
	return e, nil
}

// start starts a child with the checkpoint of the sampler.
func (e *Engine) start(ctx context.Context) error {
	c, err := startChild(ctx, &e.options)
	if err != nil {
		return err
	}
	fields := request{
		"dir": e.dir, "device": e.options.Device, "optimizer_state": e.options.OptimizerState, "reference": e.options.Reference,
		"lora_rank": e.options.LoRARank, "lora_alpha": e.options.LoRAAlpha, "lora_targets": e.options.LoRATargets,
		"train_gpus": e.options.TrainGPUs, "halvings": e.halved, "broadcast": 0,
	}
	if e.options.Broadcast {
		fields["broadcast"] = 1
	}
	fields["sampler"] = "builtin"
	if v := e.options.VLLM; v != nil {
		fields["sampler"], fields["vllm_memory"] = "vllm", v.Memory
		fields["vllm_tensor_parallel"], fields["vllm_data_parallel"] = v.TensorParallel, v.DataParallel
	}
	if e.started == 0 && e.options.Needs != (Demand{}) {
		available, known := machine.AvailableMemory(os.DirFS("/"))
		if !known {
			available = math.MaxInt64
		}
		needs := &e.options.Needs
		fields["needs_gpu"], fields["needs_beside_gpu"], fields["needs_cpu"], fields["main_memory"] = needs.OnGPU, needs.BesideGPU, needs.OnCPU, available
		fields["needs_gpu_share"] = needs.GPUShare
	}
	a, err := c.call(ctx, opOpen, fields)
	if err == nil && e.sampled != "" {
		_, err = c.call(ctx, opLoadWeights, request{"dir": e.sampled})
	}
	if err != nil {
		c.close()
		return err
	}
	e.child = c
	e.started++
	e.options.Logger.Info("checkpoint opened", "checkpoint", e.dir, "architecture", a.Architecture,
		"parameters", a.Parameters, "device", a.Device, "dtype", a.DType)
	return nil
}

// call runs an operation for a job. It starts a child if none runs. When the child
// dies, call repeats an operation of the sampler, and returns
// gpuworker.ErrStateLost for one of the learner.
func (e *Engine) call(ctx context.Context, j job, op string, fields request) (*answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.life, cancel)()
	a, err := e.locked(ctx, j, op, fields)
	if err != nil && e.life.Err() != nil {
		return nil, ErrClosed
	}
	return a, err
}

func (e *Engine) locked(ctx context.Context, j job, op string, fields request) (*answer, error) {
	select {
	case e.busy <- struct{}{}:
		defer func() { <-e.busy }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for {
		err := e.ensure(ctx)
		if err == nil && stateful(op) && e.trained != e.started {
			return nil, gpuworker.ErrStateLost
		}
		var a *answer
		if err == nil {
			a, err = e.child.call(ctx, op, fields)
		}
		if err == nil {
			e.finished(j, op, fields)
			return a, nil
		}
		if !errors.Is(err, ErrDied) || ctx.Err() != nil {
			return nil, err
		}
		if err := e.bury(ctx, j, op, err); err != nil {
			return nil, err
		}
		if stateful(op) {
			return nil, fmt.Errorf("%w: %w", gpuworker.ErrStateLost, err)
		}
	}
}

// stateful reports whether an operation needs the weights in training.
func stateful(op string) bool { return op == opLogProbs || op == opUpdate || op == opSave }

// ensure starts a child if none runs.
func (e *Engine) ensure(ctx context.Context) error {
	if e.child != nil {
		select {
		case <-e.child.ended:
			return e.child.died()
		default:
			return nil
		}
	}
	return e.start(ctx)
}

// bury counts the death of a child and pauses before the next one. It returns an
// error if too many died.
func (e *Engine) bury(ctx context.Context, j job, op string, died error) error {
	e.child = nil
	if errors.Is(died, ErrOutOfMemory) { // a child with one rank does this itself and lives
		e.halved++
	}
	e.deaths[j]++
	n := e.deaths[j]
	if n > e.options.Deaths {
		return fmt.Errorf("%d children in a row died during %s, the engine gives up: %w", n, j, died)
	}
	pause := time.Duration(0)
	if n > 1 {
		pause = min(e.options.Backoff<<min(n-2, 20), maxBackoff)
	}
	e.options.Logger.Warn("the Python child died, another one is started", "during", op, "deaths", n, "most", e.options.Deaths,
		"pause", pause, "error", died)
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// finished records the result of an operation.
func (e *Engine) finished(j job, op string, fields request) {
	switch op {
	case opSample, opSave:
		e.deaths[j] = 0
	case opLoad:
		e.trained = e.started
	case opLoadWeights:
		e.sampled, _ = fields["dir"].(string)
	}
}

// Close ends the child. Calls that run end with ErrClosed. A second Close does
// nothing.
func (e *Engine) Close() error {
	e.end()
	e.busy <- struct{}{}
	defer func() { <-e.busy }()
	if e.child != nil {
		e.child.close()
		e.child = nil
	}
	return nil
}
