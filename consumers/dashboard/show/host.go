package show

import (
	"log/slog"

	"codea1/consumers/dashboard"
	"codea1/events/connect"
)

// Host reads run directories.
type Host interface {
	// Bus returns the flags of the bus in the configuration of a run.
	Bus(dir string) (*connect.Flags, error)
	// HasLog reports whether there is a log in a run directory.
	HasLog(dir string) bool
	// OpenLog returns the events in the log of a run directory; their reader returns io.EOF
	// at their end.
	OpenLog(dir string, logger *slog.Logger) (log dashboard.Bus, closeLog func() error, err error)
}
