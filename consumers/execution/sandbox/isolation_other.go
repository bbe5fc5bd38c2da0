//go:build !linux

package sandbox

import (
	"errors"
	"syscall"
	"time"
)

// processAttributes starts a fork server in a session of its own: Ctrl-C in the
// terminal stops the stage, which then ends its fork servers in order.
func processAttributes(Level) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// Without control groups and /proc, only the limits of each process hold.

type controlGroups struct{ version int }

type controlGroup struct{}

func findControlGroups() (*controlGroups, error) { return nil, errors.ErrUnsupported }

func (*controlGroups) create(int64, int) (*controlGroup, error) { return nil, errors.ErrUnsupported }
func (*controlGroup) admit(int) error                           { return errors.ErrUnsupported }
func (*controlGroup) used() (time.Duration, bool)               { return 0, false }
func (*controlGroup) remove() error                             { return nil }

type watch struct{}

func canWatch() bool               { return false }
func startWatch(int, int64) *watch { return nil }
func (*watch) stop()               {}

func descendantsOf(int) []int { return nil }

func coreTimeOf([]int) (used, waited time.Duration, ok bool) { return 0, 0, false }
