// Package seccomp builds the system call filter of the Python sandbox.
//
// It owns the list of the system calls that a fork server and its candidates may
// make. It must not know how a filter is installed. The list names the allowed
// calls, so an unknown call is refused.
//
// Start reading at filter.go; calls.go is the list.
package seccomp
