// Package sandboxfusion speaks SandboxFusion's HTTP interface on both sides: the
// server runs whole programs in the sandbox of this machine, and the client is a
// sandbox.Backend that runs jobs on such a server.
//
// It must not know groups, tests or verdicts. SERVER.md describes the interface.
//
// Start reading at runcode.go (the request and its execution) and files.go (its
// files). server.go is the HTTP handler, guard.go refuses requests before it,
// command.go is `sandbox serve`; client.go sends jobs, answer.go
// writes a job as a program and reads its output, and remote.py is that program.
package sandboxfusion
