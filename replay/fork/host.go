package fork

import (
	"context"
	"errors"

	"codea1/events"
)

// Host is what package replay needs of the rest of the program to leave a run
// directory that training goes on from: the bus, the checkpoints and the
// meaning of a configuration are other packages' own.
type Host interface {
	// Configure returns a configuration with some of its keys changed. What is
	// said of the machine comes from the run directory dir, if there is
	// something, and never from config, which may have come from a bus. It
	// refuses changes that a run cannot go on with.
	Configure(dir, config string, changes map[string]string) (string, error)
	// Steps returns how many steps a configuration plans over so many training
	// problems.
	Steps(config string, problems int) (int, error)
	// OpenBus opens the bus that a run of the configuration uses; where it is an
	// embedded one, it lies in dir.
	OpenBus(ctx context.Context, dir, run, config string) (SeedBus, func() error, error)
	// PutBusAside makes room in dir for an empty embedded bus and keeps the old
	// one. It does nothing for a run whose bus is elsewhere.
	PutBusAside(dir, config string) error
	// WorkSets returns the sets of consumers that a run's workers form.
	WorkSets() []WorkSet
	// Checkpoints returns the versions, from 1, that the run in dir has kept of
	// a role.
	Checkpoints(dir string, role events.Role) ([]int, error)
	// PlaceCheckpoint puts a version into a run directory, whole or not at all.
	PlaceCheckpoint(ctx context.Context, p Placement) error
	// PlaceStart puts version 0 of both roles into another run directory.
	PlaceStart(from, to string) error
	// RemoveCheckpoint takes a version away.
	RemoveCheckpoint(dir string, role events.Role, version int) error
}

// Placement is a policy version on its way into a run directory.
type Placement struct {
	From    string // run directory, or with Made the folder that holds the version
	Made    bool   // it was trained anew, and has no run directory
	FromRun string // name of the run that made it
	To, Run string // run directory and name of the run that goes on from it
	Role    events.Role
	Version int
	// Position is where its trainer goes on reading.
	Position events.Position
}

// ErrNoHost is returned by a program that cannot leave a run to be gone on with.
var ErrNoHost = errors.New("no bus and no checkpoints are at hand")

var bothRoles = []events.Role{events.RoleCode, events.RoleTest}

// Progress shows how far a long operation is. It starts an operation over total
// events and returns two functions: one that takes the number of events done,
// and one that ends the operation. A nil Progress shows nothing.
type Progress func(operation string, total uint64) (at func(done uint64), finish func())

func (p Progress) start(operation string, total uint64) (at func(done uint64), finish func()) {
	if p == nil {
		return func(uint64) {}, func() {}
	}
	return p(operation, total)
}
