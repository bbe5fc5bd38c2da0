package sft

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codea1/events/machine"
	"codea1/gpuworker"
	"codea1/gpuworker/tiny"
)

// command returns a command that trains in a few seconds.
func command(t *testing.T, lines ...string) *Command {
	t.Helper()
	dir := t.TempDir()
	data := filepath.Join(dir, "rows.jsonl")
	if err := os.WriteFile(data, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	return &Command{
		Data: []string{data}, Out: filepath.Join(dir, "out"),
		Vocab: 400, Hidden: 32, Layers: 2, Heads: 2, KVHeads: 1, MLP: 64, Positions: 128,
		Epochs: 200, BatchTokens: 256, LearningRate: 0.01, FinalRate: 0.1, Warmup: 5, WeightDecay: 0.01,
		Beta1: 0.9, Beta2: 0.98, GradClip: 1, Seed: 3, DType: "bfloat16",
	}
}

// operations returns the rows of a small task: the Python operator of a name.
func operations(t *testing.T) []string {
	t.Helper()
	var lines []string
	for i, name := range []string{"add", "subtract", "multiply", "divide"} {
		for _, kind := range []string{"numbers", "lists", "words"} {
			line, err := json.Marshal(map[string]string{
				"prompt":   fmt.Sprintf("How do I %s two %s?", name, kind),
				"response": fmt.Sprintf("```python\ndef solve(a, b):\n    return a %c b\n```", "+-*/"[i]),
			})
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, string(line))
		}
	}
	return lines
}

func TestLearnsAndWritesACheckpoint(t *testing.T) {
	lines := append(operations(t), "", `{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"ok?"},{"role":"assistant","content":"yes"}]}`)
	c := command(t, lines...)
	report, err := c.Train(t.Context(), io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if report.Rows != 13 || report.Heldout != 0 || !(report.TrainLoss < 0.05) {
		t.Errorf("report %+v", report)
	}
	e, err := tiny.Open(c.Out)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(messages ...gpuworker.Message) string {
		prompt, err := e.EncodePrompt(messages)
		if err != nil {
			t.Fatal(err)
		}
		out, err := e.Sample(t.Context(), []gpuworker.SampleRequest{{Prompt: prompt, Seeds: []uint64{1}}}, gpuworker.SamplingParams{Temperature: 0.1, TopP: 1, MaxTokens: 60})
		if err != nil {
			t.Fatal(err)
		}
		return out[0][0].Text
	}
	if got := ask(gpuworker.Message{Role: "user", Content: "How do I multiply two lists?"}); got != "```python\ndef solve(a, b):\n    return a * b\n```" {
		t.Errorf("answer %q", got)
	}
	if got := ask(gpuworker.Message{Role: "system", Content: "Be brief."}, gpuworker.Message{Role: "user", Content: "ok?"}); got != "yes" {
		t.Errorf("answer %q", got)
	}

	next := command(t, operations(t)...)
	next.From, next.Epochs, next.LearningRate, next.DType, next.Warmup = c.Out, 1, 1e-4, "float32", 0
	again, err := next.Train(t.Context(), io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if !(again.TrainLoss < 0.1) {
		t.Errorf("continued at a loss of %g", again.TrainLoss)
	}
}

func TestIsDeterministic(t *testing.T) {
	var weights [2][]byte
	for i := range weights {
		c := command(t, operations(t)...)
		c.Epochs, c.Holdout = 2, 0.2
		report, err := c.Train(t.Context(), io.Discard, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if report.Heldout != 2 || math.IsNaN(report.HoldoutLoss) {
			t.Errorf("report %+v", report)
		}
		if weights[i], err = os.ReadFile(filepath.Join(c.Out, "model.safetensors")); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(weights[0], weights[1]) {
		t.Error("the same data and flags gave different weights")
	}
}

func TestErrors(t *testing.T) {
	const good = `{"prompt":"a","response":"b"}`
	long, err := json.Marshal(map[string]string{"prompt": strings.Repeat("x9", 100), "response": "y"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		line, says string
	}{
		"not JSON":       {`{`, "rows.jsonl:2: "},
		"wrong type":     {`{"prompt":1,"response":"b"}`, "rows.jsonl:2: "},
		"no response":    {`{"prompt":"a"}`, "rows.jsonl:2: neither"},
		"both":           {`{"prompt":"a","messages":[{"role":"user","content":"a"}]}`, "rows.jsonl:2: both"},
		"no assistant":   {`{"messages":[{"role":"user","content":"a"}]}`, "rows.jsonl:2: messages do not end"},
		"strange role":   {`{"messages":[{"role":"tool","content":"a"},{"role":"assistant","content":"a"}]}`, `rows.jsonl:2: bad request: message 0 has the role "tool"`},
		"too long a row": {string(long), "tokens exceed the model's 128 positions"},
	} {
		_, err := command(t, good, c.line).Train(t.Context(), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	for name, spoil := range map[string]func(*Command){
		"out exists":     func(c *Command) { c.Out = filepath.Dir(c.Out) },
		"missing file":   func(c *Command) { c.Data = []string{"missing.jsonl"} },
		"uneven heads":   func(c *Command) { c.Heads = 3 },
		"no vocabulary":  func(c *Command) { c.Vocab = 10 },
		"no epochs":      func(c *Command) { c.Epochs = 0 },
		"negative decay": func(c *Command) { c.WeightDecay = -1 },
		"NaN rate":       func(c *Command) { c.LearningRate = math.NaN() },
	} {
		c := command(t, good)
		spoil(c)
		if _, err := c.Train(t.Context(), io.Discard, io.Discard); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A model that needs more memory than the machine has is refused before it is made.
func TestModelDoesNotFit(t *testing.T) {
	if available, known := machine.AvailableMemory(os.DirFS("/")); !known || available > 40<<30 {
		t.Skipf("%d bytes are available, known: %v", available, known)
	}
	c := command(t, `{"prompt":"a","response":"b"}`)
	c.Hidden, c.Layers, c.Heads, c.KVHeads, c.MLP = 4096, 20, 32, 8, 4096
	_, err := c.Train(t.Context(), io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "million parameters takes about ") || !strings.Contains(err.Error(), "take a smaller model") {
		t.Error(err)
	}
	if _, err := os.Stat(c.Out); err == nil {
		t.Error("there is a checkpoint")
	}
}

func TestLearningRate(t *testing.T) {
	c := &Command{LearningRate: 1, FinalRate: 0.1, Warmup: 4}
	for step, want := range map[int]float64{0: 0.25, 3: 1, 4: 1, 12: 0.55, 20: 0.1} {
		if got := c.schedule(21).At(step); math.Abs(got-want) > 1e-9 {
			t.Errorf("step %d: rate %g, want %g", step, got, want)
		}
	}
	if got := c.schedule(1).At(0); got != 0.25 {
		t.Errorf("a single step: rate %g", got)
	}
}
