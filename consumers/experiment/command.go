package experiment

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/sync/errgroup"

	"codea1/consumers/dashboard"
	"codea1/events/rundir"
)

// Command is `codea1 experiment`.
type Command struct {
	File     string `arg:"" optional:"" help:"YAML file with configurations and seeds; --example prints one."`
	Dir      string `help:"Directory of the experiment, with its runs; experiments/NAME by default, NAME being that of the file." placeholder:"DIR"`
	Parallel int    `help:"Runs that are trained at the same time." default:"1" min:"1" max:"256"`
	DryRun   bool   `help:"Only print the runs, with their state, rollout tokens and time."`
	Results  bool   `help:"Train nothing: only print the results of the completed runs."`
	JSON     bool   `name:"json" help:"Print the results as JSON." xor:"format"`
	Markdown bool   `help:"Print the results as Markdown." xor:"format"`
	Record   bool   `help:"Keep the completed runs in the file beside FILE, with .json for its extension. Every start takes the runs in this file as completed if their configuration, problems and models are the same, also on another machine."`
	Example  bool   `help:"Print an example of a file, with the baselines and ablations of the paper."`

	Host Host `kong:"-"`

	matrix     *Matrix
	runs       []*Run
	identities map[*Arm]*Identity
	known      []*Record // of runs, to be recorded
}

// Validate reads the file and checks the settings of every run. Kong calls it.
func (c *Command) Validate() (err error) {
	if c.Example {
		return nil
	}
	if c.File == "" {
		return errNoFile
	}
	if c.matrix, err = ReadFile(c.File); err != nil {
		return err
	}
	if c.Dir == "" {
		c.Dir = filepath.Join("experiments", c.matrix.Name)
	}
	c.runs, err = plan(c.matrix, c.Dir, c.Host)
	return err
}

// Run completes all runs and prints the results.
func (c *Command) Run(ctx context.Context, out io.Writer, flags *kong.Context) error {
	if c.Example {
		_, err := io.WriteString(out, Example)
		return err
	}
	if err := assign(ctx, c.matrix, c.runs, c.Host); err != nil {
		return err
	}
	if err := c.adopt(ctx, flags.Stderr); err != nil {
		return err
	}
	if c.DryRun {
		return printCost(ctx, out, c.runs, c.Host, c.Parallel)
	}
	for _, r := range c.runs { // before anything begins
		if err := r.check(c.Host); err != nil {
			return err
		}
	}
	records, failed := c.train(ctx, flags.Stderr)
	if err := checkModels(c.runs, records); err != nil {
		return errors.Join(err, failed)
	}
	results := newResults(c.matrix, c.runs, records, c.identities)
	if c.Record {
		if err := results.keep(recordFile(c.File)); err != nil {
			return errors.Join(err, failed)
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%d of %d runs are completed; the same command continues: %w", results.completed(), len(c.runs), ctx.Err())
	}
	if c.Results && results.completed() == 0 {
		return errors.Join(failed, fmt.Errorf("no run of the experiment is completed in %s: leave out --results to train them", c.Dir))
	}
	return errors.Join(c.print(out, flags.Stderr, results), failed)
}

// adopt takes the runs that are recorded beside the file of the experiment.
func (c *Command) adopt(ctx context.Context, progress io.Writer) error {
	path := recordFile(c.File)
	recorded, err := readResults(path)
	if err != nil || recorded == nil && !c.Record {
		return err
	}
	c.identities = map[*Arm]*Identity{}
	for _, r := range c.runs {
		if c.identities[r.Arm] != nil {
			continue
		}
		id, err := c.Host.Identity(ctx, r.arm)
		if err != nil {
			return fmt.Errorf("run %s: %w", r.Name, err)
		}
		if r.source != nil {
			id = id.withSource(&r.Arm.Tests, c.identities[r.source.Arm])
		}
		c.identities[r.Arm] = id
	}
	if recorded == nil {
		return nil
	}
	unusable, err := adopt(c.runs, c.identities, path, recorded)
	if err == nil {
		err = needSources(c.runs)
	}
	if err != nil || unusable == 0 {
		return err
	}
	if c.Record {
		return fmt.Errorf("%s has %d runs without their evaluations, from an earlier build: move it away before --record replaces it", path, unusable)
	}
	fmt.Fprintf(progress, "%s has %d runs without their evaluations, from an earlier build: they do not count\n", path, unusable)
	return nil
}

// train completes all runs, or only reads them for --results. A run that fails does
// not stop the others.
func (c *Command) train(ctx context.Context, progress io.Writer) ([]*Record, error) {
	records, failures := make([]*Record, len(c.runs)), make([]error, len(c.runs))
	c.known = make([]*Record, len(c.runs))
	for i, r := range c.runs {
		c.known[i] = r.recorded
	}
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(c.Parallel)
	for i, r := range c.runs {
		g.Go(func() error {
			started := time.Now()
			trained := false
			say := func(format string, args ...any) {
				mu.Lock()
				defer mu.Unlock()
				trained = true
				fmt.Fprintf(progress, "run %d of %d  %s %s\n", i+1, len(c.runs), r.Name, fmt.Sprintf(format, args...))
			}
			if ctx.Err() != nil {
				return nil
			}
			if c.Results {
				records[i], failures[i] = r.read(ctx, c.Host)
				return nil
			}
			record, err := r.complete(ctx, c.Host, say)
			if err == nil && trained && c.Record {
				err = c.keep(&mu, i, record)
			}
			records[i], failures[i] = record, err
			if failures[i] == nil && trained {
				say("is completed after %s", rounded(time.Since(started)))
			}
			return nil
		})
	}
	_ = g.Wait() // failures has the errors
	failed := 0
	var first error
	for i, err := range failures {
		if err == nil {
			continue
		}
		if failed++; first == nil {
			first = fmt.Errorf("run %s: %w", c.runs[i].Name, err)
		}
	}
	if failed > 1 {
		first = fmt.Errorf("%d runs failed; the first: %w", failed, first)
	}
	return records, first
}

// keep records a completed run, with the others that are known.
func (c *Command) keep(mu *sync.Mutex, i int, record *Record) error {
	mu.Lock()
	defer mu.Unlock()
	c.known[i] = record
	return newResults(c.matrix, c.runs, c.known, c.identities).keep(recordFile(c.File))
}

// print prints the results, and writes them into the directory of the experiment.
func (c *Command) print(out, progress io.Writer, r *Results) error {
	figures, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	figures = append(figures, '\n')
	var page bytes.Buffer
	if err := dashboard.WriteOverlay(&page, r.page()); err != nil {
		return err
	}
	report := rundir.Report(c.Dir)
	if err := os.MkdirAll(c.Dir, rundir.DirMode); err != nil { // all runs may be recorded ones
		return fmt.Errorf("results: %w", err)
	}
	for path, content := range map[string][]byte{filepath.Join(c.Dir, "results.json"): figures, report: page.Bytes()} {
		if err := rundir.WriteFile(path, content, rundir.FileMode); err != nil {
			return fmt.Errorf("results: %w", err)
		}
	}
	fmt.Fprintf(progress, "page  %s\n", report)
	text := r.Text()
	switch {
	case c.JSON:
		text = string(figures)
	case c.Markdown:
		text = r.Markdown()
	}
	_, err = io.WriteString(out, text)
	return err
}
