package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"codea1/events/commandline"
	"codea1/events/connect"
	"codea1/events/rundir"
	"codea1/replay/eventlog"
)

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
