package experiment

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"codea1/consumers/dashboard"
	"codea1/events"
	"codea1/events/rundir"
)

// Host knows the settings and the logs of runs.
type Host interface {
	// Configure returns the configuration file of an arm's run with a seed.
	Configure(arm *Arm, seed uint64) (config string, err error)
	// Differences describes the settings of a begun run that differ from a
	// configuration; empty for none.
	Differences(dir, config string) (string, error)
	// Identity returns the settings and inputs that decide the results of a run, besides its seed.
	Identity(ctx context.Context, config string) (*Identity, error)
	// Visit calls visit for the events of the types in the log of a run. compacted are the
	// tokens of an event whose tokens were removed from the log. It returns false without
	// a log.
	Visit(ctx context.Context, dir string, types []events.Type, visit func(e *events.Event, compacted int64)) (found bool, err error)
	// Cost returns the cost of a whole run.
	Cost(ctx context.Context, config string) (Cost, error)
	// HasTest reports whether a run with a configuration has a Test LLM.
	HasTest(config string) (bool, error)
	// CheckEvaluation checks a command line of `codea1 eval`.
	CheckEvaluation(args []string) error
	// Content returns the SHA-256 of the content of a problem set.
	Content(ctx context.Context, set string) (string, error)
}

// Record is the outcome of a run, from its log or from a file with recorded runs.
type Record struct {
	*dashboard.State               // nil for a recorded run
	Tokens           int64         // sampled by both models
	Elapsed          time.Duration // of all attempts
	Kept             int64         // tests of the suites that were trained on
	Inputs           Inputs

	recorded      *RunResult
	first, newest *dashboard.Eval // of a recorded run
}

func (r *Record) completed() bool {
	return r != nil && (r.recorded != nil || r.Finished == events.RunCompleted)
}

// before returns the evaluation before training; nil without one.
func (r *Record) before() *dashboard.Eval {
	if r.recorded != nil {
		return r.first
	}
	return r.Before()
}

// last returns the newest evaluation of a completed run: the only one if the run
// trains no step. It is nil without an evaluation.
func (r *Record) last() *dashboard.Eval {
	switch {
	case r.recorded != nil:
		return r.newest
	case r.Steps == 0:
		return r.Before()
	}
	return r.After()
}

// trained returns the trained steps.
func (r *Record) trained() int {
	if r.recorded != nil {
		return r.recorded.Steps
	}
	return r.Trained()
}

// Run is a run of an experiment.
type Run struct {
	Arm    *Arm
	Seed   uint64
	Name   string
	dir    string // run directory
	output string // file with the output of its trainings
	config string // its configuration
	file   string // with config
	arm    string // configuration of its arm: config, but for the problems of a run with a source

	source *Run    // the run that wrote its golden tests; nil: the problem set has them
	again  bool    // a recorded run is trained again, for its log
	tasks  []*task // its evaluations

	recorded *Record // from the file beside that of the experiment; nil for none

	completing sync.Mutex // a run that has its tests from this one may complete it too
}

// read returns the outcome of the run from its log or, for a recorded run that has no
// directory here, from its record.
func (r *Run) read(ctx context.Context, host Host) (*Record, error) {
	if r.recorded != nil {
		if begun, err := r.begun(); err != nil || !begun {
			return r.recorded, err
		}
	}
	record, err := ReadRecord(ctx, host, r.dir)
	if r.recorded != nil && (err != nil || !record.completed()) {
		return r.recorded, nil
	}
	return record, err
}

// plan returns the runs of an experiment, the first seed of all arms first.
func plan(m *Matrix, dir string, host Host) ([]*Run, error) {
	var runs []*Run
	for _, seed := range m.Seeds {
		for i := range m.Arms {
			arm := &m.Arms[i]
			name := runName(arm.Name, seed)
			config, err := host.Configure(arm, seed)
			if err != nil {
				return nil, err
			}
			r := &Run{
				Arm: arm, Seed: seed, Name: name, config: config, arm: config,
				dir: filepath.Join(dir, rundir.Default, name), output: filepath.Join(dir, "output", name+".txt"),
				file: filepath.Join(dir, "configurations", name+".yaml"),
			}
			if arm.Tests.Of != "" {
				problems, err := filepath.Abs(r.problems()) // the same from every working directory
				if err != nil {
					return nil, err
				}
				own := *arm
				own.Settings = append(slices.Clone(arm.Settings), Setting{"problems", problems, arm.Tests.place})
				if r.config, err = host.Configure(&own, seed); err != nil {
					return nil, err
				}
			}
			runs = append(runs, r)
		}
	}
	link(runs)
	for i := range m.Evaluations {
		e := &m.Evaluations[i]
		if err := host.CheckEvaluation(e.args(runs[0].dir, runs[0].Seed)); err != nil {
			return nil, e.Wrong(err)
		}
	}
	return runs, nil
}

// begun reports whether the run has a directory.
func (r *Run) begun() (bool, error) {
	_, err := os.Lstat(r.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// check returns an error if the run has begun with other settings.
func (r *Run) check(host Host) error {
	if err := r.readEvaluations(); err != nil {
		return fmt.Errorf("run %s: %w", r.Name, err)
	}
	begun, err := r.begun()
	if err != nil || !begun {
		return err
	}
	differ, err := host.Differences(r.dir, r.config)
	if err == nil && differ != "" {
		err = fmt.Errorf("%s: undo the change, give the configuration another name, or choose another --dir", differ)
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", r.Name, err)
	}
	return nil
}

// maxDeaths bounds the trainings of a run that fail or are killed one after another
// without progress.
const maxDeaths = 3

// complete trains a run until it is completed, and evaluates it. Another process may
// do so already; complete waits for it. A training that failed or was killed, for
// example because memory ran out, is resumed. A recorded run is only evaluated if its
// directory is here.
func (r *Run) complete(ctx context.Context, host Host, say func(format string, args ...any)) (*Record, error) {
	r.completing.Lock()
	defer r.completing.Unlock()
	if record, err := r.read(ctx, host); err == nil && record.completed() && r.recorded != nil {
		if here := record.recorded == nil; !here && !r.again || here && r.evaluationsLeft() == 0 {
			return record, nil
		}
	}
	output, err := r.lock(ctx, say)
	if err != nil {
		return nil, err
	}
	defer func() { _ = output.Close() }() // the trainings have written it
	record, err := r.finish(ctx, host, output, say)
	if err == nil {
		err = r.evaluate(ctx, output, say)
	}
	return record, err
}

// finish trains the run until it is completed.
func (r *Run) finish(ctx context.Context, host Host, output *os.File, say func(format string, args ...any)) (*Record, error) {
	var ended error
	for deaths, known := 0, int64(-1); ; {
		if err := r.check(host); err != nil {
			return nil, err
		}
		record, err := ReadRecord(ctx, host, r.dir)
		if err != nil || record.completed() {
			return record, err
		}
		if r.source != nil {
			if err := r.export(ctx, host, output, say); err != nil {
				return nil, err
			}
		}
		progress := int64(0)
		if record != nil { // every attempt has its start in the log
			progress = record.Total() - record.Events[events.TypeRunStarted] - record.Events[events.TypeRunFinished]
		}
		if deaths++; progress > known {
			deaths, known = 0, progress
		}
		if deaths == maxDeaths {
			return nil, fmt.Errorf("its training ended %d times without progress: %w", deaths, r.why(output, ended))
		}
		if record == nil {
			say("begins")
		} else {
			say("resumes after step %d of %d", record.Trained(), record.Steps)
		}
		ended = r.train(ctx, output)
		if ctx.Err() != nil || !again(ended) {
			return nil, cmp.Or(ctx.Err(), r.why(output, ended))
		}
	}
}

// why returns an error about the end of a training, with the last line that it wrote.
func (r *Run) why(output *os.File, ended error) error {
	const most = 2048
	text := make([]byte, most)
	if info, err := output.Stat(); err == nil {
		n, _ := output.ReadAt(text, max(0, info.Size()-most)) // what can be read
		text = bytes.TrimSpace(text[:n])
	}
	last := strings.TrimPrefix(string(text[bytes.LastIndexByte(text, '\n')+1:]), "codea1: ")
	if ended == nil {
		ended = errors.New("exit status 0")
	}
	return fmt.Errorf("%w, %q; %s has the whole output", ended, last, r.output)
}

// Exit codes of a training that is tried again. Another exit code says that the user
// stopped it, or that it cannot begin.
const (
	failed = 1
	killed = -1
)

// again reports whether a child process that ended without its result is tried again.
func again(ended error) bool {
	var exit *exec.ExitError
	return ended == nil || errors.As(ended, &exit) && (exit.ExitCode() == failed || exit.ExitCode() == killed)
}

// pollLock is the time between two tries to lock an output file.
const pollLock = 200 * time.Millisecond

// lock opens the output file of the run and takes the lock on it. A training has
// the file as its output, and so keeps the lock when the experiment is killed: the
// next one waits for its end.
func (r *Run) lock(ctx context.Context, say func(format string, args ...any)) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(r.output), rundir.DirMode); err != nil {
		return nil, err
	}
	output, err := os.OpenFile(r.output, os.O_CREATE|os.O_RDWR|os.O_APPEND, rundir.FileMode)
	if err != nil {
		return nil, err
	}
	for said := false; ; said = true {
		err = unix.Flock(int(output.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			break
		}
		if !said {
			say("is being trained by another process: waiting for it")
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), output.Close())
		case <-time.After(pollLock):
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", r.output, err), output.Close())
	}
	return output, nil
}

// train runs `codea1 train` until it ends.
func (r *Run) train(ctx context.Context, output *os.File) error {
	args := []string{"train", "--no-dashboard", "--budget", "0s"}
	begun, err := r.begun()
	switch {
	case err != nil:
		return err
	case begun:
		args = append(args, "--resume", r.dir)
	default:
		if err := os.MkdirAll(filepath.Dir(r.file), rundir.DirMode); err != nil {
			return err
		}
		if err := rundir.WriteFile(r.file, []byte(r.config), rundir.FileMode); err != nil {
			return err
		}
		args = append(args, "--config", r.file, "--runs-dir", filepath.Dir(r.dir), "--name", r.Name)
	}
	command, err := child(ctx, args, output)
	if err != nil {
		return err
	}
	return command.Run()
}

// child returns a command of this program. Its output goes to a file, whose lock it has
// until it ends.
func child(ctx context.Context, args []string, output *os.File) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, program, args...)
	command.Args[0] = os.Args[0]
	command.Stdout, command.Stderr = output, output
	// A Ctrl-C in the terminal must reach it once: through the experiment.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	return command, nil
}
