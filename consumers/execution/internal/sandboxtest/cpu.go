package sandboxtest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// CPU returns the core time of this process.
func CPU(b testing.TB) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// ChildrenCPU returns the core time of this process's running children and of
// the processes that those have waited for: fork servers and candidates.
func ChildrenCPU(b testing.TB) time.Duration {
	const tick = 10 * time.Millisecond // of /proc, on every Linux
	var total time.Duration
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	if len(lists) == 0 {
		b.Skip("children cannot be listed")
	}
	for _, list := range lists {
		pids, _ := os.ReadFile(list)
		for _, pid := range strings.Fields(string(pids)) {
			text, err := os.ReadFile("/proc/" + pid + "/stat")
			if err != nil {
				continue // it ended meanwhile
			}
			fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
			for _, field := range fields[11:15] { // utime, stime, cutime, cstime
				ticks, err := strconv.Atoi(field)
				if err != nil {
					b.Fatal(err)
				}
				total += time.Duration(ticks) * tick
			}
		}
	}
	return total
}
