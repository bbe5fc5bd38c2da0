package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"

	"github.com/alecthomas/kong"

	"codea1/consumers/evaluation"
	"codea1/consumers/execution/benchmark"
	"codea1/consumers/execution/evalplus"
	"codea1/consumers/execution/grading"
	"codea1/consumers/execution/sandbox"
	"codea1/consumers/execution/sandboxfusion"
	"codea1/events/files"
	"codea1/events/rundir"
	"codea1/events/settings"
)

// EvalCommand is `codea1 eval`: the figures of a model's answers, or of given ones, to
// the problems of a benchmark.
type EvalCommand struct {
	First        string   `arg:"" optional:"" name:"checkpoint|url" help:"The checkpoint to sample from: a checkpoint directory, a run (its newest version; --at for another), builtin: the embedded model, or the address of a server with OpenAI's interface (http://HOST:PORT/v1, with --model). With --samples-file or --ground-truths, a benchmark."`
	Benchmarks   []string `arg:"" optional:"" name:"benchmark" help:"A benchmark is a release file of HumanEval+ or MBPP+ (.jsonl, .jsonl.gz; https://github.com/evalplus/humanevalplus_release, https://github.com/evalplus/mbppplus_release), a problem set of ours (.jsonl, .jsonl.gz, .parquet), or builtin:heldout. With --samples-file or --ground-truths it may also be a published JSONL file of CRUXEval (https://huggingface.co/datasets/cruxeval-org/cruxeval; problems ID/input and ID/output for each row), LiveCodeBench (https://huggingface.co/datasets/livecodebench/code_generation_lite) or BigCodeBench (https://huggingface.co/datasets/bigcode/bigcodebench and bigcodebench-hard; complete and instruct)."`
	SamplesFile  string   `help:"Grade these samples and sample none: a JSON line each with task_id and solution or completion, any number per task, as EvalPlus writes them." type:"existingfile" placeholder:"FILE" xor:"from"`
	GroundTruths bool     `help:"Grade the ground truths that the benchmark files have, and fail if one does not pass." xor:"from"`
	Out          string   `help:"With --samples-file or --ground-truths: file to add a JSON line per problem to. Problems that it already has with the same samples are not graded again, so a stopped grading can be continued." placeholder:"FILE"`
	JSON         bool     `name:"json" help:"Print a JSON object per suite of tests instead of a table."`
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
	return c.gradeFile(ctx, out, logger)
}

// evalAnswer returns the result of an answer. The first tests are the base tests.
func evalAnswer(g *grading.Grade, base, tests int) evaluation.Answer {
	a := evaluation.Answer{Code: g.Code, Behaviour: grading.Behaviour(g.Loads, g.Verdicts), Reason: g.FirstReason()}
	a.Base, a.Plus = evalplus.Passed(g.Loads, g.Verdicts, base, tests)
	return a
}

// graded are the results of a benchmark and its suites of tests.
type graded struct {
	evaluation.Results
	suites []evaluation.Suite
}

// print prints the figures by benchmark.
func (c *EvalCommand) print(out io.Writer, benchmarks map[string]graded, tasks int) error {
	for _, name := range slices.Sorted(maps.Keys(benchmarks)) {
		var sums []evaluation.Summary
		for _, s := range benchmarks[name].suites {
			sum := evaluation.Summarize(benchmarks[name].Sorted(), s)
			sum.Benchmark = name
			sums = append(sums, sum)
		}
		tasks -= len(benchmarks[name].Results)
		print := evaluation.PrintSummaries
		if c.JSON {
			print = evaluation.EncodeSummaries
		}
		if err := print(out, sums); err != nil {
			return err
		}
	}
	if tasks > 0 && !c.JSON {
		fmt.Fprintf(out, "%d problems have no samples and do not count\n", tasks)
	}
	return nil
}

// reportTests runs the suites of an evaluation on the ground truths and their mutants,
// and prints the figures. It adds a line per suite to a file of the run directory, and
// leaves out the suites that the file has.
func (c *EvalCommand) reportTests(ctx context.Context, begun *begunRun, rows map[string]*evalplus.Problem, gathered *evaluation.Gathered, progress, out io.Writer, logger *slog.Logger) (err error) {
	k, done := begun.Curriculum.Tests, map[string]*evaluation.TestResult{}
	file, err := files.Continue(rundir.Tests(begun.dir), func(line []byte) error {
		r, err := evaluation.ReadTestResult(line)
		if err == nil {
			done[r.Key()] = r
		}
		return err
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	pool, err := sandboxfusion.Open(ctx, &begun.Sandbox, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	key := func(id string, suite int) string { return (&evaluation.TestResult{ID: id, Suite: suite}).Key() }
	masked, err := benchmark.Judge(ctx, pool, executed(gathered), begun.Evaluation.EvalSuites, k,
		func(id string, suite int) bool { return done[key(id, suite)] != nil },
		func(on benchmark.SuiteResult) error {
			r := &evaluation.TestResult{ID: on.ID, Suite: on.Suite, Written: on.Written, Passed: on.Passed, Mutants: on.Mutants, Survived: on.Survived}
			done[r.Key()] = r
			return json.NewEncoder(file).Encode(r)
		})
	if err != nil {
		return fmt.Errorf("%w; codea1 eval --resume %s continues", err, begun.dir)
	}
	sayLost(progress, masked, gathered.Dropped)
	bySource := map[string][]*evaluation.TestResult{}
	for _, key := range slices.Sorted(maps.Keys(done)) {
		if row := rows[done[key].ID]; row != nil {
			bySource[row.Source] = append(bySource[row.Source], done[key])
		}
	}
	for _, source := range slices.Sorted(maps.Keys(bySource)) {
		sum := evaluation.SummarizeTests(bySource[source], k)
		sum.Benchmark = source
		print := sum.Print
		if c.JSON {
			print = func(out io.Writer) error { return json.NewEncoder(out).Encode(sum) }
		}
		if err := print(out); err != nil {
			return err
		}
	}
	return nil
}

// executed returns the executed groups of an evaluation.
func executed(gathered *evaluation.Gathered) []benchmark.Group {
	var groups []benchmark.Group
	for _, g := range gathered.Groups() {
		groups = append(groups, benchmark.Group(g))
	}
	return groups
}

// choose runs the suites about the answers of each problem on all of these answers.
func (c *EvalCommand) choose(ctx context.Context, begun *begunRun, gathered *evaluation.Gathered, logger *slog.Logger) (choices map[string]*benchmark.Choice, err error) {
	pool, err := sandboxfusion.Open(ctx, &begun.Sandbox, logger)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	choices, err = benchmark.Choices(ctx, pool, rundir.Choices(begun.dir), executed(gathered), begun.Curriculum.Tests)
	if err != nil {
		return nil, fmt.Errorf("%w; codea1 eval --resume %s continues", err, begun.dir)
	}
	return choices, nil
}
