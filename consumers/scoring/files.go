package scoring

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"codea1/consumers/evaluation"
	"codea1/consumers/execution"
	"codea1/consumers/execution/evalplus"
	"codea1/consumers/execution/grading"
	"codea1/consumers/execution/published"
	"codea1/consumers/execution/sandbox"
	"codea1/consumers/execution/sandboxfusion"
	"codea1/events/files"
	"codea1/events/progress"
)

// fileGrading grades given answers to the problems of one or several files.
type fileGrading struct {
	problems int
	samples  map[string][]string // by problem
	suites   []evaluation.Suite
	// grade grades the samples of each problem and adds its result, or says why it has
	// none.
	grade func(ctx context.Context, pool *sandbox.Pool, add func(r evaluation.Result, failure string) error) error
	lost  []string // problems that no answer was graded for, and why
}

// Given are answers to the problems of benchmark files.
type Given struct {
	Benchmarks []string
	Samples    string // file of the answers; empty: the ground truths
	Results    string // file to add results to, and to continue; empty: none
}

// Grade grades given answers and prints the figures.
func (s *Scoring) Grade(ctx context.Context, given *Given) error {
	f, err := readBenchmarks(given)
	if err != nil {
		return err
	}
	results, err := s.grade(ctx, f, given.Results)
	if err != nil {
		return err
	}
	if len(results) == 0 {
		return errors.New("no problem could be graded")
	}
	if err := s.print(map[string]graded{"": {results, f.suites}}, f.problems); err != nil || given.Samples != "" {
		return err
	}
	return s.wrongTruths(results, f.suites[len(f.suites)-1])
}

// grade grades the answers that a file of results does not have, and adds theirs.
func (s *Scoring) grade(ctx context.Context, f *fileGrading, path string) (results evaluation.Results, err error) {
	results = evaluation.Results{}
	all, sink := f.samples, io.Discard
	if path != "" {
		file, err := files.Continue(path, results.Add)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		sink = file
	}
	open := 0
	for id, codes := range all {
		if r, ok := results[id]; ok {
			if !r.Of(codes) {
				return nil, fmt.Errorf("%s has results of other samples of %s: name another --out", path, id)
			}
			all[id] = nil
			continue
		}
		open += len(codes)
	}
	if err := f.run(ctx, s.Sandbox, open, results, sink, s.Logger); err != nil {
		return nil, err
	}
	for _, lost := range f.lost {
		fmt.Fprintln(s.Progress, "not graded:", lost)
	}
	return results, nil
}

// readBenchmarks reads the benchmarks, which are of EvalPlus or of other publishers, and
// the answers.
func readBenchmarks(given *Given) (*fileGrading, error) {
	var released []*evalplus.Task
	var tasks []published.Task
	for _, path := range given.Benchmarks {
		more, err := published.ReadFile(path)
		if errors.Is(err, published.ErrUnknown) {
			others, plusErr := evalplus.ReadFile(path)
			if plusErr != nil {
				return nil, fmt.Errorf("%w; and it is %w", plusErr, published.ErrUnknown)
			}
			released, err = append(released, others...), nil
		}
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, more...)
	}
	switch {
	case len(tasks) == 0:
		return releasedGrading(released, given.Samples)
	case len(released) > 0:
		return nil, errors.New("grade files of EvalPlus in a command of their own")
	}
	return publishedGrading(tasks, given.Samples)
}

// releasedGrading grades answers to EvalPlus's tasks.
func releasedGrading(tasks []*evalplus.Task, samples string) (*fileGrading, error) {
	f := &fileGrading{problems: len(tasks), samples: map[string][]string{}, suites: evaluation.Suites}
	f.grade = func(ctx context.Context, pool *sandbox.Pool, add func(evaluation.Result, string) error) error {
		return evalplus.Grade(ctx, execution.New(pool), pool.Config().Workers, tasks, f.samples, func(t *evalplus.Task, grades []*grading.Grade) error {
			r, failure := evaluation.Result{ID: t.ID}, ""
			for _, g := range grades {
				failure = cmp.Or(failure, g.Failure)
				r.Answers = append(r.Answers, answerOf(g, t.BaseTests(), t.Tests()))
			}
			return add(r, failure)
		})
	}
	if samples != "" {
		var err error
		f.samples, err = evalplus.ReadSamples(samples, tasks)
		return f, err
	}
	for _, t := range tasks {
		f.samples[t.ID] = []string{t.Solution()}
	}
	return f, nil
}

// gradesPublished grades the samples that its caller adds.
func gradesPublished(tasks []published.Task) *fileGrading {
	f := &fileGrading{problems: len(tasks), samples: map[string][]string{}, suites: evaluation.OneSuite}
	f.grade = func(ctx context.Context, pool *sandbox.Pool, add func(evaluation.Result, string) error) error {
		return published.NewGrader(pool).Grade(ctx, tasks, f.samples, func(p *published.Result) error {
			if len(p.Missing) > 0 {
				f.lost = append(f.lost, fmt.Sprintf("%s needs modules that the sandbox's Python lacks: %q", p.Task.ID(), p.Missing))
				return nil
			}
			r := evaluation.Result{ID: p.Task.ID(), All: true}
			for _, v := range p.Verdicts {
				r.Answers = append(r.Answers, evaluation.Answer{
					Base: v.Passed, Plus: v.Passed, Code: grading.CodeHash(v.Answer), Behaviour: v.Behaviour, Reason: v.Reason,
				})
			}
			return add(r, p.Failure)
		})
	}
	return f
}

// publishedGrading grades answers to the problems of other publishers.
func publishedGrading(tasks []published.Task, samples string) (*fileGrading, error) {
	f := gradesPublished(tasks)
	if samples != "" {
		var err error
		f.samples, err = published.ReadSamples(samples, tasks)
		return f, err
	}
	for _, t := range tasks {
		if truth := t.Truth(); truth != "" {
			f.samples[t.ID()] = []string{truth}
		}
	}
	if len(f.samples) == 0 {
		return nil, errors.New("--ground-truths: LiveCodeBench's files have none")
	}
	return f, nil
}

// run adds the results of the samples to results and sink.
func (f *fileGrading) run(ctx context.Context, flags *sandbox.Flags, open int, results evaluation.Results, sink io.Writer, logger *slog.Logger) (err error) {
	pool, err := sandboxfusion.Open(ctx, flags, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	bar := progress.New(os.Stderr, open, "grading")
	failed, first := 0, ""
	err = f.grade(ctx, pool, func(r evaluation.Result, failure string) error {
		if failure != "" {
			failed, first = failed+1, cmp.Or(first, failure)
			return bar.Add(len(f.samples[r.ID]))
		}
		results[r.ID] = r
		line, err := json.Marshal(r)
		if err == nil {
			_, err = sink.Write(append(line, '\n'))
		}
		return errors.Join(err, bar.Add(len(r.Answers)))
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

// wrongTruths prints the ground truths that do not pass, and returns an error that names
// the first.
func (s *Scoring) wrongTruths(results evaluation.Results, tests evaluation.Suite) error {
	wrong, first := 0, ""
	for _, r := range results.Sorted() {
		if a := &r.Answers[0]; !tests.Passed(a) {
			wrong++
			fmt.Fprintf(s.Progress, "does not pass: %s: %s\n", r.ID, a.Reason)
			first = cmp.Or(first, r.ID+": "+a.Reason)
		}
	}
	if wrong == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d ground truths do not pass; first: %s", wrong, len(results), first)
}
