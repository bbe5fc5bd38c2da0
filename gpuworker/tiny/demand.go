package tiny

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"time"

	"codea1/events"
	"codea1/events/machine"
	"codea1/gpuworker/tiny/kernel"
	"codea1/gpuworker/tiny/qwen2"
)

// Work is the work of one role's model in one step of a run.
type Work struct {
	Prompts   int  // that are sampled from
	Samples   int  // completions of each
	Trained   int  // completions that are trained on
	Tokens    int  // of the longest completion
	Reference bool // training compares with a reference policy
}

// Demand is the memory and the time that a model needs. It follows from config.json alone.
type Demand struct {
	Parameters int
	Sampling   uint64        // bytes of memory of the engine that samples
	Training   uint64        // bytes of memory of the engine that trains
	Step       time.Duration // computing of one step if every completion has its longest length

	operations float64 // of one step
}

// promptTokens is assumed for prompts; config.json does not give their length.
const promptTokens = 256

// ReadDemand returns the demand of the model in a checkpoint directory. It reads
// only config.json.
func ReadDemand(dir string, work Work) (Demand, error) {
	demand, err := readDemand(os.DirFS(dir), work)
	if err != nil {
		return Demand{}, fmt.Errorf("checkpoint %s: %w", dir, err)
	}
	return demand, nil
}

// ShippedDemand returns the demand of the embedded checkpoint of a role.
func ShippedDemand(role events.Role, work Work) (Demand, error) {
	files, err := Checkpoint(string(role))
	if err != nil {
		return Demand{}, err
	}
	return readDemand(files, work)
}

func readDemand(files fs.FS, work Work) (Demand, error) {
	text, err := readText(files, configFile)
	if err != nil {
		return Demand{}, err
	}
	config, err := qwen2.ParseConfig(text)
	if err != nil {
		return Demand{}, fmt.Errorf("%s: %w", configFile, err)
	}
	return NewDemand(config, work, runtime.GOMAXPROCS(0)), nil
}

// NewDemand returns the demand of a model of a shape on a number of threads.
func NewDemand(c qwen2.Config, work Work, threads int) Demand {
	d := Demand{Parameters: c.Parameters()}
	weights := 4 * d.Parameters
	model := 2 * weights // with the matrices packed for products
	prompt := max(1, min(promptTokens, c.Positions-work.Tokens))
	rows := max(maxUnitRows, prompt+work.Tokens)

	// A new version is loaded beside the one in use.
	slots := min(32, work.Prompts*work.Samples)
	prefixes := slots/max(1, work.Samples) + 1
	perThread := c.PassBytes(prompt, false) + slots*(c.CacheBytes(work.Tokens)+4*c.Vocabulary) + prefixes*(c.CacheBytes(prompt)+4*c.Vocabulary)
	d.Sampling = uint64(2*model + threads*perThread)

	const adamMoments, backwardPack = 2, 1
	training := model + (adamMoments+backwardPack+min(gradientShards, work.Trained))*weights
	if work.Reference {
		training += model
	}
	d.Training = uint64(training + min(threads, gradientShards)*c.PassBytes(rows, true))

	matrices := float64(d.Parameters)
	if !c.TieEmbeddings {
		matrices -= float64(c.Vocabulary * c.Hidden) // the embedding is a table
	}
	sampled := float64(work.Prompts) * float64(prompt+work.Samples*work.Tokens)
	trained := float64(work.Trained) * float64(work.Tokens)
	passes := 3.0 // a backward pass takes twice a forward pass
	if work.Reference {
		passes++
	}
	d.operations = 2 * matrices * (sampled + passes*trained)
	d.Step = time.Duration(min(d.operations/(speed()*float64(threads)), 1e9) * float64(time.Second))
	return d
}

// speed returns the operations per second of one thread in products of matrices.
func speed() float64 {
	const n, rows = 512, 64
	var packed kernel.Packed
	kernel.Pack(&packed, make([]float32, n*n), n, n, false)
	in, out := make([]float32, rows*n), make([]float32, rows*n)
	const atLeast = 10 * time.Millisecond
	products, start := 0, time.Now()
	for ; time.Since(start) < atLeast; products++ {
		kernel.MatMul(out, n, in, n, rows, &packed, false)
	}
	return float64(products) * 2 * rows * n * n / time.Since(start).Seconds()
}

// String describes the demand of a model that is sampled from and, unless the run has
// no steps, trained.
func (d Demand) String() string {
	text := fmt.Sprintf("%.1f million parameters, about %s of memory", float64(d.Parameters)/1e6, machine.Bytes(d.Sampling+d.Training))
	if step := d.Step.Round(max(time.Second, d.Step/100).Truncate(time.Second)); step > 0 {
		text += fmt.Sprintf(", up to %s of computing per step", step)
	}
	return text
}
