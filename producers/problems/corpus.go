package problems

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/klauspost/compress/zstd"

	"codea1/events"
)

// Row is one example for supervised fine-tuning.
type Row struct {
	Prompt   string `json:"prompt"`
	Response string `json:"response"`
}

// Corpus is training text about the built-in training problems. Held-out
// problems do not occur in it. The same settings give the same rows.
type Corpus struct {
	Role   string `help:"Role that the text is for: code or test." enum:"code,test" required:""`
	Rows   int    `help:"Number of rows." default:"60000" min:"0" max:"10000000"`
	Seed   uint64 `help:"Seed of the random choices; the same seed gives the same rows." default:"1"`
	Mix    Mix    `embed:""`
	Python string `help:"CPython 3.9 or newer that computes the values." default:"python3" env:"CODEA1_PYTHON"`

	// Prompt writes the prompt about a problem and, for role test, a program. The
	// solution of the problem has the signature of the ground truth. Nil: PlainPrompt.
	Prompt func(problem *events.Problem, code string) (string, error) `kong:"-"`
}

// Mix sets how flawed a corpus is. A checkpoint that is to improve by
// reinforcement must be good enough to answer and wrong often enough to learn.
type Mix struct {
	BugRate    float64 `json:"bug_rate" help:"Share of code answers with a realistic mistake." default:"0.5" min:"0" max:"1"`
	DefectRate float64 `json:"defect_rate" help:"Share of test prompts that show code with a defect." default:"0.5" min:"0" max:"1"`
	TargetRate float64 `json:"target_rate" help:"Share of suites for code with a defect that aim an input at it; the others avoid it where they can." default:"0.3" min:"0" max:"1"`
	WrongRate  float64 `json:"wrong_rate" help:"Share of asserts that state a wrong value." default:"0.3" min:"0" max:"1"`
	SimpleRate float64 `json:"simple_rate" help:"Share of asserts on an input that is easy to work out." default:"0.5" min:"0" max:"1"`
	Asserts    int     `json:"asserts" help:"Asserts per suite." default:"3" min:"1" max:"16"`
}

const (
	maxAsserts = 16
	maxRows    = 10_000_000
	// rowsPerProcess is how many rows are worth the start of a process.
	rowsPerProcess = 1000
)

var errCorpus = errors.New("corpus")

func (c *Corpus) validate() error {
	if c.Role != "code" && c.Role != "test" {
		return fmt.Errorf("%w: role %q is neither code nor test", errCorpus, c.Role)
	}
	if c.Rows < 0 || c.Rows > maxRows {
		return fmt.Errorf("%w: %d rows is not between 0 and %d", errCorpus, c.Rows, maxRows)
	}
	for _, rate := range []struct {
		name  string
		value float64
	}{
		{"bug", c.Mix.BugRate}, {"defect", c.Mix.DefectRate}, {"target", c.Mix.TargetRate},
		{"wrong", c.Mix.WrongRate}, {"simple", c.Mix.SimpleRate},
	} {
		if !(rate.value >= 0 && rate.value <= 1) { // NaN too
			return fmt.Errorf("%w: %s rate %v is not between 0 and 1", errCorpus, rate.name, rate.value)
		}
	}
	if c.Mix.Asserts < 1 || c.Mix.Asserts > maxAsserts {
		return fmt.Errorf("%w: %d asserts per suite is not between 1 and %d", errCorpus, c.Mix.Asserts, maxAsserts)
	}
	return nil
}

// corpusEntryPoint is the function that the built-in problems ask for.
const corpusEntryPoint = "solve"

// PlainPrompt is the user's turn with the question and, for the Test LLM, the program.
func PlainPrompt(p *events.Problem, code string) (string, error) {
	if code == "" {
		return p.Question, nil
	}
	return p.Question + "\n" + fence(code), nil
}

func fence(code string) string { return "```python\n" + code + "\n```" }

// The corpus is written by the Python program that made the built-in sets: it
// runs programs on random inputs.
var (
	//go:embed generator/*.py
	generator embed.FS
	//go:embed builtin/corpus.jsonl.zst
	builtinCorpus []byte
)

// corpusData returns a JSON line for each training problem: the alternatives of
// its question, its solution and its mutants.
func corpusData() ([]byte, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	return decoder.DecodeAll(builtinCorpus, nil)
}

// Each calls visit with each row in order. It ends with the first error of
// visit. A row depends on its number alone, so n processes make every n-th row
// each.
func (c *Corpus) Each(ctx context.Context, visit func(Row) error) error {
	if err := c.validate(); err != nil {
		return err
	}
	data, err := corpusData()
	if err != nil {
		return fmt.Errorf("%w: %w", errCorpus, err)
	}
	dir, err := os.MkdirTemp("", "codea1-corpus-")
	if err != nil {
		return fmt.Errorf("%w: %w", errCorpus, err)
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, generator); err != nil {
		return fmt.Errorf("%w: %w", errCorpus, err)
	}

	ctx, cancel := context.WithCancel(ctx)
	authors := make([]*author, min(runtime.GOMAXPROCS(0), 1+c.Rows/rowsPerProcess))
	defer func() {
		cancel()
		for _, a := range authors {
			_ = a.wait() // cancelled: the error says nothing new
		}
	}()
	for i := range authors {
		authors[i], err = c.start(ctx, filepath.Join(dir, "generator"), data, i, len(authors))
		if err != nil {
			return fmt.Errorf("%w: %w", errCorpus, err)
		}
	}
	prompt := c.Prompt
	if prompt == nil {
		prompt = PlainPrompt
	}
	for i := range c.Rows {
		row, err := authors[i%len(authors)].next(ctx, prompt)
		if err != nil {
			return fmt.Errorf("%w: row %d: %w", errCorpus, i+1, err)
		}
		if err := visit(row); err != nil {
			return err
		}
	}
	return nil
}

// author is a Python process that writes rows.
type author struct {
	command *exec.Cmd
	rows    *json.Decoder
	stderr  bytes.Buffer
	waited  bool
}

// start starts the process that writes every step-th row from the given one.
func (c *Corpus) start(ctx context.Context, program string, data []byte, first, step int) (*author, error) {
	options, err := json.Marshal(map[string]any{
		"role": c.Role, "seed": c.Seed, "rows": c.Rows, "first": first, "step": step, "mix": c.Mix,
	})
	if err != nil {
		return nil, err
	}
	a := &author{command: exec.CommandContext(ctx, c.Python, "-I", "-B", program, "corpus")}
	a.command.Stdin = io.MultiReader(bytes.NewReader(append(options, '\n')), bytes.NewReader(data))
	a.command.Stderr = &a.stderr
	stdout, err := a.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	a.rows = json.NewDecoder(stdout)
	return a, a.command.Start()
}

// next reads a row: a question and an answer, or a question, code and a suite.
func (a *author) next(ctx context.Context, prompt func(*events.Problem, string) (string, error)) (Row, error) {
	var texts []string
	err := a.rows.Decode(&texts)
	switch n := len(texts); {
	case err == nil && (n == 2 || n == 3):
		code := ""
		if n == 3 {
			code = texts[1]
		}
		text, err := prompt(&events.Problem{Question: texts[0], EntryPoint: corpusEntryPoint, Solution: texts[1]}, code)
		return Row{Prompt: text, Response: fence(texts[n-1])}, err
	case ctx.Err() != nil:
		return Row{}, ctx.Err()
	case err == nil:
		return Row{}, fmt.Errorf("%v wrote %d texts", a.command, len(texts))
	}
	if exit := a.wait(); exit != nil {
		err = exit
	}
	return Row{}, fmt.Errorf("%v: %w\n%s", a.command, err, a.stderr.Bytes())
}

// wait waits until the process has ended.
func (a *author) wait() error {
	if a == nil || a.waited {
		return nil
	}
	a.waited = true
	return a.command.Wait()
}
