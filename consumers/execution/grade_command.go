package execution

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// GradeCommand runs the tests of problems on answers.
type GradeCommand struct {
	Problems string `arg:"" help:"Problems: a JSON line each with id, entry_point and tests; .gz is unpacked." type:"existingfile"`
	Answers  string `help:"Answers: a JSON line each with id and code." required:"" type:"existingfile"`
	JSON     bool   `name:"json" help:"Print a JSON line per answer instead of a table."`
	Out      string `help:"File to add a JSON line per answer to. Answers that it already has are not graded again, so a grading that was stopped goes on."`
	Flags
}

// Run grades the answers in their order. It fails where the sandbox failed on
// some: nothing is known of those, and grading again with the same --out tries
// them once more.
func (c *GradeCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger) (err error) {
	problems, err := readGradingProblems(c.Problems)
	if err != nil {
		return err
	}
	var summary gradeSummary
	g := &grader{problems: problems, counts: map[string]int{}, done: map[string]bool{}}
	sink, err := c.resume(g.done, &summary)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sink.Close()) }()
	answers := 0
	if err := readLines(c.Answers, func([]byte) error { answers++; return nil }); err != nil {
		return err
	}
	if g.pool, err = Open(ctx, c.Config(logger)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.pool.Close()) }()
	bar := progressbar.NewOptions(answers,
		progressbar.OptionSetVisibility(term.IsTerminal(int(os.Stderr.Fd()))),
		progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetDescription("grading"),
		progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	if err := bar.Set(len(g.done)); err != nil {
		return err
	}
	err = g.run(ctx, c.feed, func(grade *Grade) error {
		line, err := json.Marshal(grade)
		if err != nil {
			return err
		}
		line = append(line, '\n')
		if _, err := sink.Write(line); err != nil {
			return err
		}
		summary.add(grade)
		if c.JSON {
			_, err = out.Write(line)
		} else {
			_, err = fmt.Fprintf(out, "%-32s %3d  %3d/%-3d  %s\n", grade.ID, grade.Answer, grade.Passed, len(problems[grade.ID].Tests), grade.firstReason())
		}
		return errors.Join(err, bar.Add(1))
	})
	if err := errors.Join(err, bar.Finish()); err != nil {
		return err
	}
	if !c.JSON {
		summary.print(out)
	}
	if summary.failed > 0 {
		return fmt.Errorf("the sandbox failed on %d answers: nothing is known of them", summary.failed)
	}
	return nil
}

func (c *GradeCommand) feed(each func(GradingAnswer) error) error {
	return readLines(c.Answers, func(line []byte) error {
		var a GradingAnswer
		if err := json.Unmarshal(line, &a); err != nil {
			return err
		}
		return each(a)
	})
}

// resume opens the file that grades go to and notes those already in it. A last
// line that a stopped grading left unfinished is cut off.
func (c *GradeCommand) resume(done map[string]bool, summary *gradeSummary) (io.WriteCloser, error) {
	if c.Out == "" {
		return discard{}, nil
	}
	file, err := os.OpenFile(c.Out, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (io.WriteCloser, error) { return nil, errors.Join(err, file.Close()) }
	text, err := io.ReadAll(file)
	if err != nil {
		return fail(err)
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	for number, line := range bytes.Split(text[:whole], []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		var g Grade
		if err := json.Unmarshal(line, &g); err != nil {
			return fail(fmt.Errorf("%s:%d: not a line of grades: %w", c.Out, number+1, err))
		}
		if g.Failure == "" && !done[g.key()] {
			done[g.key()] = true
			summary.add(&g)
		}
	}
	if err := file.Truncate(int64(whole)); err != nil {
		return fail(err)
	}
	if _, err := file.Seek(int64(whole), io.SeekStart); err != nil {
		return fail(err)
	}
	return file, nil
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
