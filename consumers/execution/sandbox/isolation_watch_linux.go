package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// watch looks at a fork server's candidates from time to time and kills them
// when they hold too much memory together: the second best, after a control
// group. Between two looks a candidate can take what the cores fill in that
// time, and never more than candidateProcesses times Config.MemoryBytes.
//
// No memory hides from it: what belongs to no process (shared memory without a
// file, memfd, System V segments) is refused by the system call filter.
type watch struct {
	timer *time.Timer
	quit  chan struct{}
	done  chan struct{}
}

func canWatch() bool {
	_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid()))
	return err == nil
}

// startWatch begins to watch the children of a fork server. Stop ends it.
func startWatch(zygote int, most int64) *watch {
	w := &watch{quit: make(chan struct{}), done: make(chan struct{})}
	w.timer = time.AfterFunc(watchInterval, func() {
		defer close(w.done)
		again := time.NewTicker(watchInterval)
		defer again.Stop()
		for {
			// The fork server's own children only: their numbers are theirs until
			// it waits for them, after stop. It ends what is below them.
			if heldTogether(descendantsOf(zygote), most) > most {
				for _, pid := range childrenOf(zygote) {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
			select {
			case <-w.quit:
				return
			case <-again.C:
			}
		}
	})
	return w
}

// stop waits until a look that has begun is over.
func (w *watch) stop() {
	if w == nil {
		return
	}
	close(w.quit)
	if !w.timer.Stop() {
		<-w.done
	}
}

// descendantsOf returns the processes below one. A process that forks
// meanwhile may be missed, until the next look.
func descendantsOf(pid int) []int {
	var found []int
	for at := []int{pid}; len(at) > 0; at = at[1:] {
		for _, child := range childrenOf(at[0]) {
			found, at = append(found, child), append(at, child)
		}
	}
	return found
}

func childrenOf(pid int) []int {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil // it has ended
	}
	var found []int
	for _, thread := range threads {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, thread.Name()))
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				found = append(found, child)
			}
		}
	}
	return found
}

// heldTogether returns the bytes of memory that processes hold. Pages that
// several share count once, but only where counting them for each comes to more
// than most: the exact way costs a walk through all their pages.
func heldTogether(pids []int, most int64) int64 {
	total := int64(0)
	for _, pid := range pids {
		total += residentOf(pid)
	}
	if total <= most {
		return total
	}
	total = 0
	for _, pid := range pids {
		total += shareOf(pid)
	}
	return total
}

// residentOf returns the bytes of a process's pages; 0 where it has ended.
func residentOf(pid int) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	var size, resident int64
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return 0
	}
	return resident * int64(os.Getpagesize())
}

// shareOf returns the bytes of a process's pages, each divided by how many
// processes share it; 0 where it has ended.
func shareOf(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if os.IsPermission(err) {
		return residentOf(pid)
	}
	_, after, found := strings.Cut(string(text), "\nPss:")
	kib, _, _ := strings.Cut(strings.TrimSpace(after), " ")
	share, err := strconv.ParseInt(kib, 10, 64)
	if !found || err != nil {
		return 0
	}
	return share << 10
}
