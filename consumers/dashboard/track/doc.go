// Package track writes the figures of a run for the tools that teams run already:
// TensorBoard, CSV readers, MLflow and W&B. It also sends traces of the groups to an
// OpenTelemetry collector.
//
// The figures are the rows of dashboard.Rows: every tool gets the same names, steps and
// values. A tool's files are written anew from the first event of the run, so they are
// the same whether a run was followed, resumed or read from its log.
//
// No stage knows this package. A tool that fails is left out; the run goes on.
//
// Start reading at tracker.go. Each tool has a file with its name.
package track
