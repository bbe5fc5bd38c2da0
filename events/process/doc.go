// Package process is one operating system process of a run: all stages of the run
// under train, one of them under stage.
//
// It owns what the stages of a process share (process.go), the start of a worker and
// its outbox (worker.go), the flags of a process with one stage (flags.go), and the
// attempts that such a process works through (attempts.go).
//
// It must not know what a stage does. Start reading at process.go.
package process
