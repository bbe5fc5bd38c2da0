package sft

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"codea1/events/commandline"
	"codea1/events/machine"
	"codea1/events/progress"
	"codea1/gpuworker/tiny"
	"codea1/gpuworker/tiny/qwen2"
	"codea1/gpuworker/tiny/safetensors"
	"codea1/gpuworker/tiny/tokenizer"
)

// Command is train-sft: it trains a new checkpoint, or continues one, on written
// responses. The same files and flags give the same checkpoint bit for bit on the
// same machine.
type Command struct {
	Data []string `arg:"" type:"existingfile" help:"JSONL files; a row is {\"prompt\": ..., \"response\": ...} or {\"messages\": [...]} with a message of the assistant at the end."`
	Out  string   `required:"" short:"o" type:"path" help:"Checkpoint directory to write; it must not exist."`

	From      string `type:"existingdir" help:"Checkpoint directory to continue from, with its shape and tokenizer."`
	Tokenizer string `type:"existingfile" help:"tokenizer.json to use; without it a tokenizer is trained on the data."`

	Vocab     int  `default:"768" min:"1" max:"1048576" help:"Largest vocabulary of a trained tokenizer."`
	Hidden    int  `default:"128" min:"1" max:"131072" help:"Width of the residual stream."`
	Layers    int  `default:"4" min:"1" max:"256" help:"Decoder layers."`
	Heads     int  `default:"4" min:"1" max:"131072" help:"Attention heads; a divisor of --hidden."`
	KVHeads   int  `name:"kv-heads" default:"2" min:"1" max:"131072" help:"Key/value heads; a divisor of --heads."`
	MLP       int  `name:"mlp" default:"352" min:"1" max:"131072" help:"Width of the feed-forward layers."`
	Positions int  `default:"1024" min:"1" max:"131072" help:"Longest sequence of prompt and response in tokens."`
	Untied    bool `help:"Use separate matrices for embedding and output layer."`

	Epochs       int     `default:"3" min:"1" max:"1000000" help:"Passes over the data."`
	BatchTokens  int     `default:"4096" min:"1" max:"1073741824" help:"Tokens of an optimizer step, with the prompts."`
	LearningRate float64 `name:"lr" default:"0.003" above:"0" max:"1000" help:"Peak learning rate."`
	FinalRate    float64 `default:"0.05" min:"0" max:"1" help:"Learning rate of the last step, as a share of the peak."`
	Warmup       int     `default:"50" min:"0" max:"10000000" help:"Steps of linear warm-up before the cosine."`
	WeightDecay  float64 `default:"0.05" min:"0" max:"1000" help:"Decoupled weight decay of matrices."`
	Beta1        float64 `name:"beta1" default:"0.9" min:"0" max:"1" help:"AdamW's decay of the first moment."`
	Beta2        float64 `name:"beta2" default:"0.98" min:"0" max:"1" help:"AdamW's decay of the second moment."`
	GradClip     float64 `default:"1" min:"0" max:"1e9" help:"Largest gradient norm; 0 for no limit."`
	Seed         uint64  `default:"1" help:"Seed of the initial weights, the held-out rows and the order of the data."`
	Holdout      float64 `default:"0.02" min:"0" max:"1" help:"Share of the rows that are held out to measure the loss."`

	DType string `name:"dtype" enum:"bfloat16,float32" default:"bfloat16" help:"Type of the stored weights: bfloat16 or float32."`
}

// Run trains. It prints a line per epoch on standard error and, on a terminal, a
// progress bar.
func (c *Command) Run(ctx context.Context) error {
	bar := io.Discard
	if progress.IsTerminal(os.Stderr) {
		bar = os.Stderr
	}
	_, err := c.Train(ctx, os.Stderr, bar)
	return err
}

// Report is the result of a training; losses are nats per response token.
type Report struct {
	Rows, Heldout int
	TrainLoss     float64 // mean over the last epoch
	HoldoutLoss   float64 // NaN without held-out rows
}

// Train trains and writes the checkpoint. It prints a line per epoch on lines and
// a progress bar on bar.
func (c *Command) Train(ctx context.Context, lines, bar io.Writer) (Report, error) {
	if err := c.check(); err != nil {
		return Report{}, err
	}
	rows, err := readRows(c.Data)
	if err != nil {
		return Report{}, err
	}
	engine, err := c.engine(rows)
	if err != nil {
		return Report{}, err
	}
	sequences, err := encodeRows(engine, rows)
	if err != nil {
		return Report{}, err
	}
	training, heldOut := splitHoldout(sequences, c.Holdout, c.Seed)
	if len(training) == 0 {
		return Report{}, errors.New("no rows to train on")
	}
	report, err := c.train(ctx, engine, training, heldOut, lines, bar)
	if err != nil {
		return report, err
	}
	return report, c.write(ctx, engine)
}

func (c *Command) check() error {
	if _, err := os.Lstat(c.Out); !errors.Is(err, fs.ErrNotExist) {
		return commandline.Wrong(fmt.Errorf("--out %s exists already", c.Out))
	}
	switch {
	case c.From != "" && c.Tokenizer != "":
		return errors.New("--tokenizer cannot be used with --from, which has its own tokenizer")
	case c.Epochs < 1 || c.BatchTokens < 1 || c.Warmup < 0:
		return errors.New("--epochs and --batch-tokens must be at least 1, --warmup at least 0")
	case !(c.LearningRate > 0) || !(c.FinalRate >= 0 && c.FinalRate <= 1):
		return errors.New("--lr must be above 0 and --final-rate within 0 to 1")
	case !(c.Holdout >= 0 && c.Holdout < 1):
		return errors.New("--holdout must be at least 0 and below 1")
	case !(c.Beta1 >= 0 && c.Beta1 < 1) || !(c.Beta2 >= 0 && c.Beta2 < 1):
		return errors.New("--beta1 and --beta2 must be at least 0 and below 1")
	case !(c.WeightDecay >= 0) || !(c.GradClip >= 0):
		return errors.New("--weight-decay and --grad-clip must not be negative")
	}
	return nil
}

// engine opens --from or creates a model of the requested shape.
func (c *Command) engine(rows []row) (*tiny.Engine, error) {
	work := tiny.Work{Prompts: 1, Samples: 1, Trained: len(rows)}
	if c.From != "" {
		demand, err := tiny.ReadDemand(c.From, work)
		if err == nil {
			err = fits(demand)
		}
		if err != nil {
			return nil, err
		}
		e, err := tiny.Open(c.From)
		if err != nil {
			return nil, err
		}
		e.ResetOptimizer() // its state belongs to another training
		return e, nil
	}
	t, err := c.tokenizer(rows)
	if err != nil {
		return nil, err
	}
	if c.Heads < 1 || c.Hidden%c.Heads != 0 {
		return nil, fmt.Errorf("--hidden %d is not a multiple of --heads %d", c.Hidden, c.Heads)
	}
	shape := qwen2.Config{
		Vocabulary: t.Size(), Hidden: c.Hidden, Layers: c.Layers, Heads: c.Heads, KVHeads: c.KVHeads,
		HeadSize: c.Hidden / c.Heads, MLP: c.MLP, Positions: c.Positions,
		RopeTheta: 10000, NormEpsilon: 1e-6, TieEmbeddings: !c.Untied, InitStd: 0.02,
	}
	if err := shape.Validate(); err != nil {
		return nil, err
	}
	if err := fits(tiny.NewDemand(shape, work, runtime.GOMAXPROCS(0))); err != nil {
		return nil, err
	}
	return tiny.New(shape, t, c.Seed)
}

// fits returns an error if this machine has too little memory to train a model.
func fits(d tiny.Demand) error {
	if available, known := machine.AvailableMemory(os.DirFS("/")); known && d.Training > available {
		return fmt.Errorf("training %.1f million parameters takes about %s of memory, but this machine has %s available: take a smaller model",
			float64(d.Parameters)/1e6, machine.Bytes(d.Training), machine.Bytes(available))
	}
	return nil
}

func (c *Command) tokenizer(rows []row) (*tokenizer.Tokenizer, error) {
	if c.Tokenizer == "" {
		return tokenizer.Train(rowTexts(rows), c.Vocab)
	}
	text, err := os.ReadFile(c.Tokenizer)
	if err != nil {
		return nil, err
	}
	t, err := tokenizer.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Tokenizer, err)
	}
	return t, nil
}

// write writes the checkpoint to a temporary directory and renames it to --out, so
// that --out is never incomplete.
func (c *Command) write(ctx context.Context, engine *tiny.Engine) (err error) {
	parent := filepath.Dir(c.Out)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(parent, ".train-sft-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	dtype := safetensors.BF16
	if c.DType == "float32" {
		dtype = safetensors.F32
	}
	if err := engine.Export(ctx, dir, dtype); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	if err := os.Rename(dir, c.Out); err != nil {
		return err
	}
	d, err := os.Open(parent)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
