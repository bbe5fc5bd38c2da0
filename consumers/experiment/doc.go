// Package experiment runs a matrix of trainings and compares their results: `codea1
// experiment`.
//
// A file names configurations (presets and settings of train) and seeds. Each
// configuration with each seed is an ordinary run in a directory of its own, made
// by `codea1 train` in a child process. The results are one table and one page with
// the means over seeds, their intervals, and the paired differences to a baseline.
//
// An experiment has no other state than its runs. Each start reads their logs,
// resumes the runs that have begun, and begins the others. A run is trained by the
// process that holds the lock on its output file: the experiment or, after the
// experiment was killed, the training that inherited the file.
//
// Completed runs can be kept in a small file beside that of the experiment (--record,
// recorded.go). A run in it counts as completed without its directory, so the evidence
// of an experiment can grow over several machines.
//
// A completed run can be evaluated (evaluated.go), by `codea1 eval` in a child process.
// The file with an evaluation's figures begins with its configuration, so that one that
// was killed is continued as it began. A run may also write the golden tests of another
// (static.go).
//
// The package does not know the settings or the log of a run. Package main does, as
// its Host.
//
// Start reading at file.go, then command.go, run.go and results.go.
package experiment
