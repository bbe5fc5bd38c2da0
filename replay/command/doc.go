// Package command is the command line of the event log (codea1 replay) and of the
// Mistake Book (codea1 mistakes): flags, output for people, and JSON.
//
// It computes nothing: packages eventlog, audit, query, export and fork do.
// Start reading at command.go.
package command
