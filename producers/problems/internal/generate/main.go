// Command generate writes the data of the built-in problems: it runs the
// Python program in generator and compresses its output.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := generate(ctx, "generator", "builtin"); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func generate(ctx context.Context, generator, out string) error {
	dir, err := os.MkdirTemp("", "codea1-generate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	python := exec.CommandContext(ctx, "python3", "-I", "-B", generator, "sets", dir)
	python.Stderr = os.Stderr
	if err := python.Run(); err != nil {
		return fmt.Errorf("%v: %w", python, err)
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	for _, name := range []string{"train.jsonl", "heldout.jsonl", "corpus.jsonl", "hard.jsonl", "hard-heldout.jsonl"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, name+".zst"), encoder.EncodeAll(text, nil), 0o644); err != nil {
			return err
		}
	}
	return nil
}
