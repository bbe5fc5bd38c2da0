package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"
)

// coreTimeOf returns how long processes have run, including the ended children
// that they waited for, and how long they were ready to run but had no core. ok is
// false where the kernel does not count that.
func coreTimeOf(pids []int) (used, waited time.Duration, ok bool) {
	for _, pid := range pids {
		used += ranFor(pid)
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			continue // it has ended
		}
		for _, thread := range threads {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", pid, thread.Name()))
			var ran, delayed int64
			if _, err := fmt.Sscan(string(text), &ran, &delayed); err == nil {
				waited, ok = waited+time.Duration(delayed), true
			}
		}
	}
	return used, waited, ok
}

// ranFor returns the core time of a process and of the ended children that it
// waited for; 0 if it has ended.
func ranFor(pid int) time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	// The name of a process is in brackets, and a program can put a bracket into it.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 15 {
		return 0
	}
	const tick = 10 * time.Millisecond // of /proc, on every Linux
	var ticks [4]int64                 // user, system, and both of the children
	if _, err := fmt.Sscan(strings.Join(fields[11:15], " "), &ticks[0], &ticks[1], &ticks[2], &ticks[3]); err != nil {
		return 0
	}
	return time.Duration(ticks[0]+ticks[1]+ticks[2]+ticks[3]) * tick
}
