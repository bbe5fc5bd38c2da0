// Package rundir is the layout of a run directory, which holds all files of a
// run:
//
//	config.yaml              the configuration of the run
//	log/                     the event log and the Mistake Book (replay/eventlog/FORMAT.md)
//	nats/                    the store of the embedded NATS server, and the passwords of its two logins
//	checkpoints/ROLE/vNNNNNN Hugging Face directories, one per policy version; start is version 0
//	cache/ROLE/              checkpoints from a store (--checkpoint-store); may be deleted
//	outbox/NAME/             output events of a stage before they are published; NAME-N with replicas
//	report.html              the results, with charts
//	benchmark.jsonl          of an evaluation (codea1 eval): its problems
//	results.jsonl            likewise: a line per problem with the results of its answers
//	samples.jsonl            likewise: its answers in EvalPlus's format
//	choices.jsonl            likewise: a line per problem with the results of its answers on the suites of a Test LLM
//	tests.jsonl              of an evaluation of suites: a line per suite, with its results on the mutants
package rundir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"codea1/events"
	"codea1/events/commandline"
)

// Default is the directory that holds the run directories.
const Default = "runs"

// Config returns the path of the configuration.
func Config(run string) string { return filepath.Join(run, "config.yaml") }

// Log returns the directory of the event log.
func Log(run string) string { return filepath.Join(run, "log") }

// NATS returns the directory of the embedded NATS server.
func NATS(run string) string { return filepath.Join(run, "nats") }

// Report returns the path of the report.
func Report(run string) string { return filepath.Join(run, "report.html") }

// Benchmark returns the path of the problems of an evaluation.
func Benchmark(run string) string { return filepath.Join(run, "benchmark.jsonl") }

// Published returns the path of the published benchmark of an evaluation.
func Published(run string) string { return filepath.Join(run, "published.jsonl") }

// Results returns the path of the results of an evaluation.
func Results(run string) string { return filepath.Join(run, "results.jsonl") }

// Samples returns the path of the answers of an evaluation.
func Samples(run string) string { return filepath.Join(run, "samples.jsonl") }

// Choices returns the path of the results of answers on the suites of a Test LLM.
func Choices(run string) string { return filepath.Join(run, "choices.jsonl") }

// Tests returns the path of the results of an evaluation of suites.
func Tests(run string) string { return filepath.Join(run, "tests.jsonl") }

// Checkpoints returns the directory of a role's checkpoints.
func Checkpoints(run string, role events.Role) string {
	return filepath.Join(run, "checkpoints", string(role))
}

// Start returns the directory of a role's version 0.
func Start(run string, role events.Role) string {
	return filepath.Join(Checkpoints(run, role), "start")
}

// Cache returns the directory of checkpoints of a role that came from a store.
func Cache(run string, role events.Role) string {
	return filepath.Join(run, "cache", string(role))
}

// Outbox returns the directory of the outbox of the n-th replica of a stage, n
// from 0.
func Outbox(run, stage string, n int) string {
	if n > 0 {
		stage = fmt.Sprintf("%s-%d", stage, n)
	}
	return filepath.Join(run, "outbox", stage)
}

// Find returns the directory of a run, which is given by path or by name below
// runsDir. The directory holds a configuration, a log or the store of
// a bus.
func Find(runsDir, run string) (string, error) {
	if runsDir == "" {
		runsDir = Default
	}
	for _, dir := range []string{run, filepath.Join(runsDir, run)} {
		for _, part := range []string{Config(dir), Log(dir), NATS(dir)} {
			if _, err := os.Lstat(part); err == nil {
				return filepath.Abs(dir)
			}
		}
	}
	return "", commandline.Wrong(fmt.Errorf("run %q: neither %s nor %s holds a run (config.yaml, log or nats); `ls %s` lists the runs there",
		run, run, filepath.Join(runsDir, run), runsDir))
}

// Create creates the directory of a new run with its configuration. Only its owner
// can read it. Without a name the run is named after the time. A process that is killed meanwhile
// leaves the whole directory or none.
func Create(runsDir, name, config string, now time.Time) (string, error) {
	if name == "" {
		name = now.Format("20060102-150405")
	}
	if err := events.ValidName(name); err != nil {
		return "", fmt.Errorf("--name: %w", err)
	}
	if err := os.MkdirAll(runsDir, 0o755); err != nil {
		return "", fmt.Errorf("runs directory: %w", err)
	}
	dir, err := filepath.Abs(filepath.Join(runsDir, name))
	if err != nil {
		return "", err
	}
	if _, err := os.Lstat(dir); err == nil {
		return "", commandline.Wrong(fmt.Errorf("run %s exists already: --resume %s resumes it, --name gives a new run another name", dir, name))
	}
	partial, err := os.MkdirTemp(filepath.Dir(dir), ".new-") // with DirMode; no run has a name like this
	if err != nil {
		return "", fmt.Errorf("run directory: %w", err)
	}
	if err = WriteFile(Config(partial), []byte(config), FileMode); err == nil {
		err = os.Rename(partial, dir) // fails if another process was faster
	}
	if err != nil {
		return "", fmt.Errorf("run directory: %w", errors.Join(err, os.RemoveAll(partial)))
	}
	return dir, SyncDir(filepath.Dir(dir))
}
