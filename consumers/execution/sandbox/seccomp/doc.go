// Package seccomp builds the system call filter of the Python sandbox.
//
// It owns the list of what a fork server and its candidates may ask of the
// kernel; it must not know how a filter is installed. The list names what is
// allowed, so a call that nobody thought of is refused.
//
// Start reading at filter.go; calls.go is the list.
package seccomp
