package fork

import (
	"context"
	"errors"
	"time"

	"codea1/events"
)

// Host gives this package the bus, the checkpoints and the configuration of a
// run directory. They belong to other packages.
type Host interface {
	// Configure returns a configuration with changed keys. Machine settings come
	// from the run directory dir, if it has a configuration, and never from
	// config, because config may come from a bus. Configure returns an error for
	// a change that a run does not allow.
	Configure(dir, config string, changes map[string]string) (string, error)
	// Config returns the configuration of the run in a run directory; empty if the
	// directory does not say it.
	Config(dir string) (string, error)
	// Steps returns the planned steps of a configuration for a number of training
	// problems.
	Steps(config string, problems int) (int, error)
	// OpenBus opens the bus of a run with the configuration. An embedded bus is
	// in dir.
	OpenBus(ctx context.Context, dir, run, config string) (SeedBus, func() error, error)
	// PutBusAside renames the embedded bus in dir, so that a new one is empty. It
	// does nothing for a run with another bus.
	PutBusAside(dir, config string) error
	// Checkpoints returns the versions of a role, from 1, that have a checkpoint in
	// the run directory dir.
	Checkpoints(dir string, role events.Role) ([]int, error)
	// PlaceCheckpoint copies a checkpoint into a run directory, atomically.
	PlaceCheckpoint(ctx context.Context, p Placement) error
	// PlaceStart copies version 0 of each model into another run directory, which has
	// its configuration.
	PlaceStart(from, to string) error
	// RemoveCheckpoint removes the checkpoint of a version.
	RemoveCheckpoint(dir string, role events.Role, version int) error
}

// Placement describes a checkpoint to be copied into a run directory.
type Placement struct {
	From    string // run directory, or if Made is set the folder with the version
	Made    bool   // the version was trained again and has no run directory
	FromRun string // name of the run that made the checkpoint
	To, Run string // run directory and name of the run that gets the checkpoint
	Role    events.Role
	Version int
	// Position is the position from which the version's trainer reads.
	Position events.Position
}

// ErrNoHost is returned by a program without a Host.
var ErrNoHost = errors.New("no host configured: fork, restore-bus and rebuild --from-bus are unavailable")

var bothRoles = []events.Role{events.RoleCode, events.RoleTest}

// Operation is a long operation.
type Operation struct {
	Name  string
	Total uint64        // events, or policy versions with Takes
	Takes time.Duration // estimate for an operation that may take minutes; 0 for others
}

// Progress shows the progress of long operations. It starts an operation and returns
// two functions: at takes how much of the total is done, finish ends the operation.
// A nil Progress shows nothing.
type Progress func(Operation) (at func(done uint64), finish func())

func (p Progress) start(o Operation) (at func(done uint64), finish func()) {
	if p == nil {
		return func(uint64) {}, func() {}
	}
	return p(o)
}
