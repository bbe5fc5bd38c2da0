package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"codea1/consumers/execution/sandbox"
	"codea1/consumers/rewards"
	"codea1/events"
	"codea1/events/commandline"
	"codea1/events/connect"
	"codea1/events/doctor"
	"codea1/events/rundir"
	"codea1/producers/problems"
	"codea1/replay/command"
	"codea1/replay/eventlog"
	"codea1/replay/fork"
)

// The exit codes of the program, besides 0.
const (
	exitFailed      = 1   // the command could not do its work
	exitUsage       = 2   // the command line, the environment or a configuration is wrong
	exitNegative    = 3   // a check was done, and its answer is no
	exitInterrupted = 130 // Ctrl-C or SIGTERM ended the command before its work was done
)

// exitCode returns the exit code of a command that ran. Stages and servers have no
// other end than a signal: it is no interruption.
func exitCode(ctx context.Context, line string, args []string, err error) int {
	name, _, _ := strings.Cut(line+" <", " <")
	endless := strings.HasPrefix(name, "stage ") || name == "sandbox serve" || name == events.StageDashboard
	switch {
	case ctx.Err() != nil && !endless:
		return exitInterrupted
	case err == nil:
		return 0
	case isNegative(name, err):
		return exitNegative
	case commandline.IsWrong(err, args) || namesNothing(err):
		return exitUsage
	}
	return exitFailed
}

// namesNothing reports whether an error is about a name that is none.
func namesNothing(err error) bool {
	for _, none := range []error{problems.ErrNoProblem, problems.ErrUnknownSet, rewards.ErrUnknownRecipe, fork.ErrNotEmpty, events.ErrNoDeadLetter} {
		if errors.Is(err, none) {
			return true
		}
	}
	return false
}

// isNegative reports whether an error is the answer of a check.
func isNegative(name string, err error) bool {
	var found *command.FindingsError
	var corrupt *eventlog.CorruptError
	var origin *fork.OriginError
	var weights *fork.DivergedError
	switch name {
	case "replay verify":
		return errors.As(err, &found) || errors.As(err, &corrupt) || errors.As(err, &origin)
	case "replay retrain":
		return errors.As(err, &weights)
	case "problems check":
		return errors.Is(err, problems.ErrCheckFailed)
	case "sandbox check":
		return errors.Is(err, sandbox.ErrNotIsolated)
	case "doctor":
		return errors.Is(err, doctor.ErrMissing)
	}
	return false
}

// remedy returns the commands that make a damaged log again; empty for any other
// error. The bus keeps every event of a run.
func remedy(err error) string {
	var corrupt *eventlog.CorruptError
	if !errors.As(err, &corrupt) {
		return ""
	}
	log, err := filepath.Abs(corrupt.Dir)
	if err != nil || log != rundir.Log(filepath.Dir(log)) {
		return "" // it is not the log of a run directory
	}
	run, bus := filepath.Dir(log), connect.Embedded
	if _, err := os.Stat(rundir.NATS(run)); err != nil {
		bus = "BUS" // the run has no embedded one
	}
	again := run + "-rebuilt"
	return fmt.Sprintf("\nif the bus still has the events of the run, these commands make its log again:\n"+
		"  codea1 replay rebuild %s %s --from-bus %s\n  mv %s %s\n  mv %s %s",
		commandline.Word(run), commandline.Word(again), bus, commandline.Word(log), commandline.Word(log+".damaged"), commandline.Word(rundir.Log(again)), commandline.Word(log))
}
