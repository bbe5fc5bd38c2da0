package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"

	"github.com/alecthomas/kong"

	"codea1/consumers/execution/sandbox"
	"codea1/consumers/scoring"
	"codea1/events/settings"
)

// EvalCommand is `codea1 eval`: the figures of a model's answers, or of given ones, to
// the problems of a benchmark.
type EvalCommand struct {
	First        string   `arg:"" optional:"" name:"checkpoint|url" help:"The checkpoint to sample from: a checkpoint directory, a run (its newest version; --at for another), builtin: the embedded model, or the address of a server with OpenAI's interface (http://HOST:PORT/v1, with --model). With --samples-file or --ground-truths, a benchmark."`
	Benchmarks   []string `arg:"" optional:"" name:"benchmark" help:"A benchmark is a release file of HumanEval+ or MBPP+ (.jsonl, .jsonl.gz; https://github.com/evalplus/humanevalplus_release, https://github.com/evalplus/mbppplus_release), a problem set of ours (.jsonl, .jsonl.gz, .parquet), or builtin:heldout; with --role test also a file of UnLeakedTestBench (https://github.com/huangd1999/UnLeakedTestBench); or, alone, a published JSONL file of CRUXEval (https://huggingface.co/datasets/cruxeval-org/cruxeval; problems ID/input and ID/output for each row), LiveCodeBench (https://huggingface.co/datasets/livecodebench/code_generation_lite) or BigCodeBench (https://huggingface.co/datasets/bigcode/bigcodebench and bigcodebench-hard; complete and instruct)."`
	SamplesFile  string   `help:"Grade these samples and sample none: a JSON line each with task_id and solution or completion, any number per task, as EvalPlus writes them." type:"existingfile" placeholder:"FILE" xor:"from"`
	GroundTruths bool     `help:"Grade the ground truths that the benchmark files have, and fail if one does not pass." xor:"from"`
	Out          string   `help:"With --samples-file or --ground-truths: file to add a JSON line per problem to. Problems that it already has with the same samples are not graded again, so a stopped grading can be continued." placeholder:"FILE"`
	JSON         bool     `name:"json" help:"Print a JSON object per suite of tests instead of a table."`
	Mutants      string   `help:"With --role test: programs that make the mutants of the ground truths: builtin, or cosmic-ray: Cosmic Ray, which the Python of --python needs. With --resume, other mutants judge the same suites." enum:"builtin,cosmic-ray" default:"builtin"`
	SampleFlags
	EvalSettings
}

// evalMemoryMiB is EvalPlus's limit. Some ground truths need more than a training
// gives an answer.
const evalMemoryMiB = 4096

// BeforeReset makes the limits of EvalPlus the defaults of the flags.
func (*EvalCommand) BeforeReset(ctx *kong.Context) error {
	var base sandbox.Flags
	if err := settings.Defaults(&base); err != nil {
		return err
	}
	base.MemoryMiB = evalMemoryMiB
	settings.Layer(ctx.Flags(), &base)
	return nil
}

// Run samples and grades answers, or grades given ones, and prints the figures.
func (c *EvalCommand) Run(ctx context.Context, flags *kong.Context, out io.Writer, logger *slog.Logger) error {
	if c.SamplesFile == "" && !c.GroundTruths {
		return c.sample(ctx, flags, out, logger)
	}
	if c.First == "" {
		return errors.New("name the benchmark")
	}
	s := &scoring.Scoring{Sandbox: &c.Sandbox, JSON: c.JSON, Out: out, Progress: os.Stderr, Logger: logger}
	return s.Grade(ctx, &scoring.Given{Benchmarks: append([]string{c.First}, c.Benchmarks...), Samples: c.SamplesFile, Results: c.Out})
}
