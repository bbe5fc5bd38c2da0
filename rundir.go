package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"codea1/events"
)

// A run directory holds everything a run leaves behind.
//
//	config.yaml              the configuration it runs with
//	log/                     the event log and the Mistake Book (replay/FORMAT.md)
//	nats/                    the embedded server's store
//	checkpoints/ROLE/vNNNNNN Hugging Face directories, one per policy version; start is version 0
//	outbox/NAME/             outputs of a stage, stored before they are published; NAME-N with replicas
//	report.html              what came of it, with charts
func reportPath(run string) string { return filepath.Join(run, "report.html") }
func configPath(run string) string { return filepath.Join(run, "config.yaml") }
func logPath(run string) string    { return filepath.Join(run, "log") }
func natsPath(run string) string   { return filepath.Join(run, "nats") }
func startPath(run string, role events.Role) string {
	return filepath.Join(checkpointPath(run, role), "start")
}
func checkpointPath(run string, role events.Role) string {
	return filepath.Join(run, "checkpoints", string(role))
}

// outboxPath returns the directory of the outbox of the n-th replica of a stage,
// n from 0.
func outboxPath(run, stage string, n int) string {
	if n > 0 {
		stage = fmt.Sprintf("%s-%d", stage, n)
	}
	return filepath.Join(run, "outbox", stage)
}

// findRun returns the directory of a run given by path or by name below
// runsDir.
func findRun(runsDir, run string) (string, error) {
	if runsDir == "" {
		runsDir = defaultRunsDir
	}
	for _, dir := range []string{run, filepath.Join(runsDir, run)} {
		if _, err := os.Stat(configPath(dir)); err == nil {
			return filepath.Abs(dir)
		}
	}
	return "", fmt.Errorf("run %q: neither %s nor %s holds a run (a config.yaml); `ls %s` lists the runs there",
		run, run, filepath.Join(runsDir, run), runsDir)
}

// newRun creates the directory of a run of the given name, or of one named
// after the time, with its configuration: both or neither, whenever it is
// killed.
func newRun(runsDir, name, config string, now time.Time) (string, error) {
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
		return "", fmt.Errorf("run %s exists already: --resume %s goes on with it, --name gives a new one another name", dir, name)
	}
	partial, err := os.MkdirTemp(filepath.Dir(dir), ".new-") // no name of a run begins like this
	if err != nil {
		return "", fmt.Errorf("run directory: %w", err)
	}
	err = errors.Join(os.Chmod(partial, 0o755), os.WriteFile(configPath(partial), []byte(config), 0o644))
	if err == nil {
		err = os.Rename(partial, dir) // fails where another process was faster
	}
	if err != nil {
		return "", fmt.Errorf("run directory: %w", errors.Join(err, os.RemoveAll(partial)))
	}
	return dir, nil
}
