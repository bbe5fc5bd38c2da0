// Package machine describes the machine of this process: its processors and its memory.
package machine

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Describe returns the operating system, the processors and the available memory.
func Describe() string {
	text := fmt.Sprintf("%s/%s, %d CPUs", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	if cpus, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(cpus)) {
			if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
				text += " (" + strings.TrimSpace(value) + ")"
				break
			}
		}
	}
	if available, known := AvailableMemory(os.DirFS("/")); known {
		text += ", " + Bytes(available) + " of memory available"
	}
	return text
}

// Bytes writes a number of bytes in MiB or GiB.
func Bytes(n uint64) string {
	if n < 10<<30 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d GiB", n>>30)
}
