package sandbox

import (
	"errors"
	"fmt"
	"time"
)

// Limits of all processes of a candidate together. The limits that the harness
// sets with set_limits hold for each process, and there may be many.
const (
	// candidateProcesses is how many processes and threads a candidate may have.
	candidateProcesses = 64
	// forkServerMemory is the memory of a fork server itself, which shares a control
	// group with its candidates.
	forkServerMemory = 64 << 20
	// watchInterval is the time between two checks of a candidate's memory where
	// there are no control groups. Most candidates end before the first check.
	watchInterval = 20 * time.Millisecond
)

var errWatchOnly = errors.New("none wanted")

// bounds is how a pool limits the memory of all processes of a candidate
// together. It stays the same for the pool's whole life.
type bounds struct {
	memory int64 // bytes: the candidate's own limit, its files, its fork server
	groups *controlGroups
	// ungrouped is why there are no groups. Then the pool checks a candidate's
	// memory every watchInterval, where the machine allows it.
	ungrouped error
}

func newBounds(config Config) bounds {
	b := bounds{memory: config.MemoryBytes + scratchFiles*config.FileBytes + forkServerMemory}
	if config.watchOnly {
		b.ungrouped = errWatchOnly
		return b
	}
	b.groups, b.ungrouped = findControlGroups()
	return b
}

// String describes the limits that are in force.
func (b bounds) String() string {
	most := fmt.Sprintf("%d MiB with its fork server", b.memory>>20)
	switch {
	case b.groups != nil:
		return fmt.Sprintf("a candidate with all it starts: %s, %d processes and threads (cgroup v%d)", most, candidateProcesses, b.groups.version)
	case canWatch():
		return fmt.Sprintf("a candidate with all it starts: %s, looked at every %v (no control groups: %v)", most, watchInterval, b.ungrouped)
	}
	return fmt.Sprintf("each process of a candidate by itself (no control groups: %v)", b.ungrouped)
}
