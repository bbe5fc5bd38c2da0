package machine

import (
	"bufio"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// AvailableMemory returns how much memory this process can take before the kernel
// swaps or kills: the machine's available memory, or less if a control group
// allows less. root is the root of the file system. The second result is false
// where the kernel does not say it.
func AvailableMemory(root fs.FS) (uint64, bool) {
	available, known := memAvailable(root)
	for _, limit := range groupLimits(root) {
		if !known || limit < available {
			available, known = limit, true
		}
	}
	return available, known
}

// memAvailable reads /proc/meminfo.
func memAvailable(root fs.FS) (uint64, bool) {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		var kib uint64
		if n, _ := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); n == 1 {
			return kib << 10, true
		}
	}
	return 0, false
}

// groupLimits returns the limits of the control groups of this process, of both
// versions. The root group of a container is mounted at the root of the hierarchy.
func groupLimits(root fs.FS) []uint64 {
	f, err := root.Open("proc/self/cgroup")
	if err != nil {
		return nil
	}
	defer f.Close()
	var limits []uint64
	for lines := bufio.NewScanner(f); lines.Scan(); {
		parts := strings.SplitN(lines.Text(), ":", 3)
		if len(parts) != 3 {
			continue
		}
		mount, file := "sys/fs/cgroup", "memory.max"
		if parts[0] != "0" {
			if parts[1] != "memory" {
				continue
			}
			mount, file = mount+"/memory", "memory.limit_in_bytes"
		}
		for group := path.Clean("/" + parts[2]); ; group = path.Dir(group) {
			text, err := fs.ReadFile(root, path.Join(mount, group, file))
			// "max" is no number: no limit.
			if limit, bad := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil && bad == nil {
				limits = append(limits, limit)
			}
			if group == "/" {
				break
			}
		}
	}
	return limits
}
