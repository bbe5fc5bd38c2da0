package grading

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"codea1/consumers/execution"
	"codea1/consumers/execution/sandbox"
	"codea1/consumers/execution/sandboxfusion"
	"codea1/events/files"
	"codea1/events/progress"
)

// Command runs the tests of problems on answers.
type Command struct {
	Problems string `arg:"" help:"Problems: a JSON line each with id, entry_point, tests and, if known, solution; .gz is unpacked." type:"existingfile"`
	Answers  string `help:"Answers: a JSON line each with id and code, any number per problem; .gz is unpacked." required:"" type:"existingfile" placeholder:"FILE"`
	JSON     bool   `name:"json" help:"Print a JSON line per answer instead of a table."`
	Tests    bool   `help:"In the table, print every test's verdict below its answer."`
	Out      string `help:"File to add a JSON line per answer to. Answers that it already has are not graded again, so a stopped grading can be continued." placeholder:"FILE"`
	sandbox.Flags
}

// Run grades the answers in their order. It fails if the sandbox failed on some:
// nothing is known of those, and the same command with the same --out tries them
// again.
func (c *Command) Run(ctx context.Context, out io.Writer, logger *slog.Logger) (err error) {
	problems, err := readProblems(c.Problems)
	if err != nil {
		return err
	}
	// All rows are read before the first is graded, so that a mistake in the last
	// row is found at once.
	answers := 0
	if err := c.feed(problems, func(Answer) error { answers++; return nil }); err != nil {
		return err
	}
	var summary gradeSummary
	g := NewGrader(nil, 0, problems)
	sink, err := c.resume(g.done, &summary)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sink.Close()) }()
	pool, err := sandboxfusion.Open(ctx, &c.Flags, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	g.Executor, g.Workers = execution.New(pool), pool.Config().Workers
	bar := progress.New(os.Stderr, answers, "grading")
	if err := bar.Skip(len(g.done)); err != nil {
		return err
	}
	if !c.JSON {
		fmt.Fprintf(out, "%-32s %6s  %7s  %s\n", "PROBLEM", "ANSWER", "PASSED", "FIRST FAILURE")
	}
	feed := func(each func(Answer) error) error { return c.feed(problems, each) }
	err = g.Run(ctx, feed, func(grade *Grade) error {
		line, err := json.Marshal(grade)
		if err != nil {
			return err
		}
		line = append(line, '\n')
		if _, err := sink.Write(line); err != nil {
			return err
		}
		summary.add(grade)
		if err := bar.Clear(); err != nil { // otherwise the table's line begins at the end of the bar
			return err
		}
		if c.JSON {
			_, err = out.Write(line)
		} else {
			err = c.print(out, grade, len(problems[grade.ID].Tests))
		}
		return errors.Join(err, bar.Add(1))
	})
	err = errors.Join(err, bar.Finish())
	if ctx.Err() != nil {
		return fmt.Errorf("stopped after %d of %d answers; %s: %w", summary.answers, answers, c.remedy(), ctx.Err())
	}
	if err != nil {
		return err
	}
	if !c.JSON {
		summary.print(out)
	}
	if summary.failed > 0 {
		return fmt.Errorf("the sandbox failed on %d answers: run the command again to grade them", summary.failed)
	}
	return nil
}

// remedy says how to continue a stopped grading.
func (c *Command) remedy() string {
	if c.Out == "" {
		return "with --out FILE, a stopped grading can be continued"
	}
	return "the same command continues there"
}

func (c *Command) print(out io.Writer, grade *Grade, tests int) error {
	_, err := fmt.Fprintf(out, "%-32s %6d  %3d/%-3d  %s\n", grade.ID, grade.Answer, grade.Passed, tests, grade.FirstReason())
	if !c.Tests {
		return err
	}
	for i, v := range grade.Verdicts {
		inProcess := ""
		if v.InProcess {
			inProcess = "in process "
		}
		_, oneErr := fmt.Fprintf(out, "    test %-4d %-8s %s%s\n", i, v.Verdict, inProcess, v.Detail)
		err = errors.Join(err, oneErr)
	}
	return err
}

func (c *Command) feed(problems map[string]*Problem, each func(Answer) error) error {
	return ReadLines(c.Answers, func(line []byte) error {
		answer, err := readAnswer(line, problems)
		if err != nil {
			return err
		}
		return each(answer)
	})
}

// resume opens the output file and reads its grades. It cuts off an unfinished
// last line of a stopped grading.
func (c *Command) resume(done map[string]bool, summary *gradeSummary) (io.WriteCloser, error) {
	if c.Out == "" {
		return discard{}, nil
	}
	return files.Continue(c.Out, func(line []byte) error {
		var g Grade
		if err := json.Unmarshal(line, &g); err != nil {
			return fmt.Errorf("not a line of grades: %w", err)
		}
		if g.Failure == "" && !done[g.key()] {
			done[g.key()] = true
			summary.add(&g)
		}
		return nil
	})
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }

// gradeSummary adds grades up.
type gradeSummary struct {
	answers, failed, loaded, solved int
	rates                           float64 // sum of the pass rates of those that did not fail
}

func (s *gradeSummary) add(g *Grade) {
	s.answers++
	if g.Failure != "" {
		s.failed++
		return
	}
	if g.Loads {
		s.loaded++
	}
	if g.Solved() {
		s.solved++
	}
	s.rates += g.PassRate
}

func (s *gradeSummary) print(out io.Writer) {
	known := s.answers - s.failed
	if known == 0 {
		return
	}
	share := func(n float64) float64 { return 100 * n / float64(known) }
	fmt.Fprintf(out, "\n%d answers: %.1f%% load, %.1f%% pass all tests, mean pass rate %.1f%%\n",
		known, share(float64(s.loaded)), share(float64(s.solved)), share(s.rates))
}
