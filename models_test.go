package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codea1/events/machine"
	"codea1/gpuworker/tiny/qwen2"
)

// A model that needs more memory than the machine has is refused before a run has a
// directory, with its demand. Only its config.json is read.
func TestModelsThatDoNotFit(t *testing.T) {
	t.Parallel()
	if available, known := machine.AvailableMemory(os.DirFS("/")); !known || available > 500<<30 {
		t.Skipf("%d bytes are available, known: %v", available, known)
	}
	runs, model := filepath.Join(t.TempDir(), "runs"), t.TempDir()
	config, err := qwen2.Config{
		Vocabulary: 150000, Hidden: 2048, Layers: 24, Heads: 16, KVHeads: 2, HeadSize: 128, MLP: 8192, Positions: 8192,
		RopeTheta: 1e6, NormEpsilon: 1e-6, TieEmbeddings: true, InitStd: 0.02,
	}.MarshalFile("bfloat16")
	if err == nil {
		err = os.WriteFile(filepath.Join(model, "config.json"), config, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	var out, stderr bytes.Buffer
	args := []string{"train", "--no-dashboard", "--runs-dir", runs, "--preset", "paper", "--code-model", model, "--test-model", model}
	code := run(t.Context(), args, &out, &stderr)
	for _, want := range []string{
		"code  1", "test  1", "million parameters, about ", "of computing per step",
		"codea1: --code-model " + model + ": ", "; --test-model " + model + ": ", "of memory available: take a smaller model",
	} {
		if code != 1 || !strings.Contains(stderr.String(), want) {
			t.Errorf("exit code %d, no %q in %s", code, want, &stderr)
		}
	}
	if _, err := os.Stat(runs); err == nil {
		t.Error("there is a runs directory")
	}
}
