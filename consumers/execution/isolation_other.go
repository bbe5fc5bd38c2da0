//go:build !linux

package execution

import "syscall"

// processAttributes starts a fork server in a session of its own: Ctrl-C in the
// terminal stops the stage, which then ends its fork servers in order.
func processAttributes(Level) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
