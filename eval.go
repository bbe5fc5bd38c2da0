package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/alecthomas/kong"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"codea1/consumers/evaluation"
	"codea1/consumers/execution"
	"codea1/consumers/execution/evalplus"
	"codea1/consumers/execution/grading"
	"codea1/consumers/execution/sandbox"
	"codea1/consumers/execution/sandboxfusion"
	"codea1/events/files"
	"codea1/events/settings"
)

// EvalCommand is `codea1 eval`: the figures of answers to the problems of a benchmark.
type EvalCommand struct {
	Benchmarks  []string `arg:"" name:"benchmark" help:"Release file of HumanEval+ or MBPP+ (.jsonl, .jsonl.gz), as https://github.com/evalplus/humanevalplus_release and https://github.com/evalplus/mbppplus_release publish them." type:"existingfile"`
	SamplesFile string   `help:"Samples in EvalPlus's format: a JSON line each with task_id and solution or completion, any number per task." required:"" type:"existingfile" placeholder:"FILE"`
	Out         string   `help:"File to add a JSON line per problem to. Problems that it already has with the same samples are not graded again, so a stopped grading can be continued." placeholder:"FILE"`
	JSON        bool     `name:"json" help:"Print a JSON object per suite of tests instead of a table."`
	sandbox.Flags
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

// Run grades the samples and prints the figures.
func (c *EvalCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger) (err error) {
	var tasks []*evalplus.Task
	for _, path := range c.Benchmarks {
		more, err := evalplus.ReadFile(path)
		if err != nil {
			return err
		}
		tasks = append(tasks, more...)
	}
	samples, err := evalplus.ReadSamples(c.SamplesFile, tasks)
	if err != nil {
		return err
	}
	results := evaluation.Results{}
	var sink io.Writer
	if c.Out == "" {
		sink = io.Discard
	} else {
		file, err := files.Continue(c.Out, results.Add)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		sink = file
	}
	open := 0
	for id, codes := range samples {
		if r, ok := results[id]; ok {
			if !r.Of(codes) {
				return fmt.Errorf("%s has results of other samples of %s: name another --out", c.Out, id)
			}
			samples[id] = nil
			continue
		}
		open += len(codes)
	}
	if err := c.grade(ctx, tasks, samples, open, results, sink, logger); err != nil {
		return err
	}
	return c.print(out, results, len(tasks))
}

// grade adds the results of samples to results and sink.
func (c *EvalCommand) grade(ctx context.Context, tasks []*evalplus.Task, samples map[string][]string, open int, results evaluation.Results, sink io.Writer, logger *slog.Logger) (err error) {
	pool, err := sandboxfusion.Open(ctx, &c.Flags, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	bar := progressbar.NewOptions(open,
		progressbar.OptionSetVisibility(term.IsTerminal(int(os.Stderr.Fd()))),
		progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetDescription("grading"),
		progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	failed, first := 0, ""
	err = evalplus.Grade(ctx, execution.New(pool), pool.Config().Workers, tasks, samples, func(t *evalplus.Task, grades []*grading.Grade) error {
		r := evaluation.Result{ID: t.ID}
		for _, g := range grades {
			if g.Failure != "" {
				if failed++; first == "" {
					first = g.Failure
				}
				return bar.Add(len(grades))
			}
			a := evaluation.Answer{Code: g.Code, Behaviour: evalplus.Behaviour(g.Loads, g.Verdicts), Reason: g.FirstReason()}
			a.Base, a.Plus = t.Passed(g.Loads, g.Verdicts)
			r.Answers = append(r.Answers, a)
		}
		results[t.ID] = r
		line, err := json.Marshal(r)
		if err == nil {
			_, err = sink.Write(append(line, '\n'))
		}
		return errors.Join(err, bar.Add(len(grades)))
	})
	err = errors.Join(err, bar.Finish())
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("stopped after %d problems; the same command with --out FILE continues there: %w", len(results), ctx.Err())
	case err == nil && failed > 0:
		return fmt.Errorf("%d problems are not graded, because the sandbox failed; the same command with --out FILE tries them again; first: %s", failed, first)
	}
	return err
}

// print prints the figures of both suites of tests.
func (c *EvalCommand) print(out io.Writer, results evaluation.Results, tasks int) error {
	var sums []evaluation.Summary
	for _, s := range evaluation.Suites {
		sums = append(sums, evaluation.Summarize(results.Sorted(), s))
	}
	if c.JSON {
		for _, s := range sums {
			if err := json.NewEncoder(out).Encode(s); err != nil {
				return err
			}
		}
		return nil
	}
	if len(results) < tasks {
		fmt.Fprintf(out, "%d of %d problems have no samples and do not count\n", tasks-len(results), tasks)
	}
	return evaluation.PrintSummaries(out, sums)
}
