package torch

import (
	"cmp"
	"log/slog"
	"time"
)

// Options are the options of an Engine.
type Options struct {
	// Python has codea1_torch installed. Empty: python3.
	Python string
	// Dir is the checkpoint directory that the engine opens.
	Dir string
	// Device is auto, cpu, cuda or cuda:N. Empty: auto.
	Device string
	// OptimizerState says where AdamW's moments and the float32 weights are: device,
	// cpu, or 8bit (moments in 8 bits on the device). Empty: device.
	OptimizerState string
	// Reference says where the reference model is: device or cpu. Empty: device.
	Reference string
	// LoRARank is the rank of an adapter that is trained in place of all weights, on
	// the projections LoRATargets, scaled by LoRAAlpha over the rank. 0: none.
	LoRARank    int
	LoRAAlpha   float64
	LoRATargets []string
	// TrainGPUs is the number of processes that train together, each on a GPU of its
	// own from Device on, or on the CPU. 0: 1.
	TrainGPUs int
	// Broadcast hands weights to and from other processes of the machine without files.
	Broadcast bool
	// VLLM samples with vLLM in place of the builtin sampler; nil: the builtin one.
	VLLM *VLLM
	// Needs is the memory that must be free when the engine starts; zero: no check.
	Needs Demand
	// Silence is how long the child may send nothing before it counts as hung and
	// is killed. It sends a frame each second. Default 5 minutes: a machine
	// that swaps stops a process for minutes.
	Silence time.Duration
	// StartTimeout bounds the start of the child: imports, and the reading of the
	// checkpoint. Default 20 minutes.
	StartTimeout time.Duration
	// Deaths is how many children in a row may die during the same work before
	// the engine gives up. Default 5.
	Deaths int
	// Backoff is the pause before the second restart in a row. It doubles with
	// each further one, up to 30 s. Default 1 s.
	Backoff time.Duration
	// Logger gets the log lines of the child. Default: discard.
	Logger *slog.Logger

	watch func(c *child, kind string, op string) // for tests: called with each frame of a request
}

// VLLM are the options of sampling with vLLM.
type VLLM struct {
	Memory                       float64 // share of each GPU
	TensorParallel, DataParallel int     // their product is the number of GPUs
}

// Defaults of Options.
const (
	DefaultPython  = "python3"
	DefaultDevice  = "auto"
	onDevice       = "device"
	defaultSilence = 5 * time.Minute
	defaultStart   = 20 * time.Minute
	defaultDeaths  = 5
	defaultBackoff = time.Second
	maxBackoff     = 30 * time.Second
	closeTimeout   = 30 * time.Second // for the child to end by itself
	cancelTimeout  = 2 * time.Minute  // for the child to end a cancelled request
)

func (o Options) withDefaults() Options {
	if o.Python == "" {
		o.Python = DefaultPython
	}
	if o.Device == "" {
		o.Device = DefaultDevice
	}
	o.OptimizerState = cmp.Or(o.OptimizerState, onDevice)
	o.Reference = cmp.Or(o.Reference, onDevice)
	for _, d := range []struct {
		value     *time.Duration
		byDefault time.Duration
	}{{&o.Silence, defaultSilence}, {&o.StartTimeout, defaultStart}, {&o.Backoff, defaultBackoff}} {
		if *d.value == 0 {
			*d.value = d.byDefault
		}
	}
	o.TrainGPUs = max(1, o.TrainGPUs)
	if o.Deaths == 0 {
		o.Deaths = defaultDeaths
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
