package sandbox

import (
	"errors"
	"fmt"
	"time"
)

// What all processes of a candidate may hold together. The limits of harness's
// set_limits hold for each process, and there may be many.
const (
	// candidateProcesses is how many processes and threads a candidate may have.
	candidateProcesses = 64
	// forkServerMemory is what a fork server holds itself; it shares a control group
	// with its candidates.
	forkServerMemory = 64 << 20
	// watchInterval is how often a candidate is looked at where there are no
	// control groups. Most candidates are done before the first look.
	watchInterval = 20 * time.Millisecond
)

var errWatchOnly = errors.New("none wanted")

// bounds says how a pool keeps candidates within their memory, the processes
// of one taken together. It holds for the pool's whole life.
type bounds struct {
	memory int64 // bytes: the candidate's own limit, its files, its fork server
	groups *controlGroups
	// ungrouped is why there are no groups. Then the pool looks at a candidate
	// every watchInterval, where the machine lets it.
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

// String says what is in force, for people.
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
