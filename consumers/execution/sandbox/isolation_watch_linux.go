package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// watch checks the memory of a fork server's candidates at intervals and kills
// them when they hold too much together. It is weaker than a control group:
// between two checks a candidate can take as much as the cores fill in that time,
// but never more than candidateProcesses times Config.MemoryBytes.
//
// A candidate cannot hide memory: the system call filter refuses memory that
// belongs to no process (shared memory without a file, memfd, System V segments).
type watch struct {
	timer *time.Timer
	quit  chan struct{}
	done  chan struct{}
}

func canWatch() bool {
	_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid()))
	return err == nil
}

// startWatch watches the children of a fork server until stop.
func startWatch(forkServer int, most int64) *watch {
	w := &watch{quit: make(chan struct{}), done: make(chan struct{})}
	w.timer = time.AfterFunc(watchInterval, func() {
		defer close(w.done)
		again := time.NewTicker(watchInterval)
		defer again.Stop()
		for {
			// Only the fork server's own children are killed: it waits for them
			// after stop, so until then no other process gets their numbers. The
			// fork server ends the processes below them.
			if heldTogether(descendantsOf(forkServer), most) > most {
				for _, pid := range childrenOf(forkServer) {
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

// stop ends the watch. A check that has begun is over when it returns.
func (w *watch) stop() {
	if w == nil {
		return
	}
	close(w.quit)
	if !w.timer.Stop() {
		<-w.done
	}
}

// descendantsOf returns the processes below one. It may miss a process that is
// forked meanwhile.
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

// heldTogether returns the bytes of memory that processes hold. It counts shared
// pages for each process as long as the sum is within most, and once otherwise:
// the exact count reads all pages of all processes.
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
