package sandbox

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// This file writes the cgroup file systems directly. A library for them
// (containerd/cgroups) brings ten modules, eBPF and D-Bus among them, for the
// four files that are needed here.

const (
	groupPrefix = "codea1-"
	// ownGroup is the group of the pool's process in version 2: a group with
	// processes of its own cannot pass controllers to groups below it.
	ownGroup = groupPrefix + "pool"
)

// controlGroups is where this process may make control groups: below its own
// group, so that the limits of that group stay in force.
type controlGroups struct {
	version int
	parents []string // version 2: one directory; version 1: one for each controller
}

// controlGroup holds one fork server and its candidates.
type controlGroup struct {
	directories []string
	locks       []*flock.Flock // of the directories, while the group is in use: see sweep
	usage       *os.File       // the core time of the group so far; nil where it is not counted
}

var groupNumber atomic.Int64

// findControlGroups returns where to make groups. The error says why there are
// none.
func findControlGroups() (*controlGroups, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	groups, err := parseControlGroups(mounts, own)
	if err != nil {
		return nil, err
	}
	if groups.version == 2 {
		if groups.parents[0], err = delegate(groups.parents[0], os.Getpid()); err != nil {
			return nil, err
		}
	}
	groups.sweep()
	// A try shows missing permissions and read-only mounts.
	probe, err := groups.create(1<<30, candidateProcesses)
	if err != nil {
		return nil, err
	}
	return groups, probe.remove()
}

// parseControlGroups finds the directories of this process's own groups in the
// kernel's tables of mounts (proc_pid_mountinfo(5)) and groups (cgroups(7)).
func parseControlGroups(mounts, own []byte) (*controlGroups, error) {
	paths := map[string]string{} // by controller; "" is version 2
	for line := range strings.Lines(string(own)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			return nil, fmt.Errorf("/proc/self/cgroup: no group in %q", line)
		}
		for _, controller := range strings.Split(fields[1], ",") {
			paths[controller] = fields[2]
		}
	}
	first := map[string]string{}
	second := ""
	lines := bufio.NewScanner(bytes.NewReader(mounts))
	for lines.Scan() {
		before, after, _ := strings.Cut(lines.Text(), " - ")
		head, kind := strings.Fields(before), strings.Fields(after)
		if len(head) < 5 || len(kind) < 3 {
			continue
		}
		root, point := head[3], head[4]
		switch kind[0] {
		case "cgroup2":
			if path, ok := paths[""]; ok {
				second = below(point, root, path)
			}
		case "cgroup":
			for _, option := range strings.Split(kind[2], ",") {
				if path, ok := paths[option]; ok && slices.Contains([]string{"memory", "pids", "cpu", "cpuacct"}, option) {
					first[option] = below(point, root, path)
				}
			}
		}
	}
	// Where both versions are mounted, a controller is in one of them.
	if first["memory"] != "" && first["pids"] != "" {
		// With the cpu controller each group gets the same share of the processor:
		// a candidate with many processes cannot slow down the others.
		parents := slices.Sorted(maps.Values(first))
		return &controlGroups{version: 1, parents: slices.Compact(parents)}, nil
	}
	if second != "" {
		return &controlGroups{version: 2, parents: []string{second}}, nil
	}
	return nil, errors.New("no cgroup file system with memory and pids is mounted")
}

// below returns the directory of path where the mount at point shows root.
func below(point, root, path string) string {
	if rest, ok := strings.CutPrefix(path, root); ok {
		path = rest
	}
	return filepath.Join(point, path)
}

// delegate passes the controllers on to the groups below a group and returns that
// group. It is own, or the group above if an earlier call has moved this process
// to ownGroup.
func delegate(own string, pid int) (string, error) {
	if filepath.Base(own) == ownGroup {
		own = filepath.Dir(own)
	}
	handed, err := os.ReadFile(filepath.Join(own, "cgroup.subtree_control"))
	if err != nil {
		return "", err
	}
	if fields := strings.Fields(string(handed)); slices.Contains(fields, "memory") && slices.Contains(fields, "pids") {
		return own, nil
	}
	inside, err := os.ReadFile(filepath.Join(own, "cgroup.procs"))
	if err != nil {
		return "", err
	}
	me := strconv.Itoa(pid)
	switch strings.TrimSpace(string(inside)) {
	case "":
	case me:
		leaf := filepath.Join(own, ownGroup)
		if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
		if err := write(leaf, "cgroup.procs", me); err != nil {
			return "", err
		}
	default:
		return "", fmt.Errorf("%s has other processes; give the program a group of its own, as `systemd-run --user --scope -p Delegate=yes` does", own)
	}
	if err := write(own, "cgroup.subtree_control", "+memory +pids"); err != nil {
		return "", err
	}
	_ = write(own, "cgroup.subtree_control", "+cpu") // fair shares of the processor, where the machine has the controller
	return own, nil
}

func write(directory, file, text string) error {
	return os.WriteFile(filepath.Join(directory, file), []byte(text), 0o644)
}

// create makes an empty group with limits.
func (g *controlGroups) create(memory int64, processes int) (made *controlGroup, err error) {
	made = new(controlGroup)
	defer func() {
		if err != nil {
			err = errors.Join(err, made.remove())
		}
	}()
	for _, parent := range g.parents {
		directory, lock, err := ownDirectory(func() (string, error) {
			directory := filepath.Join(parent, fmt.Sprintf("%s%d-%d", groupPrefix, os.Getpid(), groupNumber.Add(1)))
			return directory, os.Mkdir(directory, 0o755)
		})
		if err != nil {
			return made, err
		}
		made.directories, made.locks = append(made.directories, directory), append(made.locks, lock)
	}
	limits := []struct {
		file  string
		limit int64
		must  bool
	}{
		{"memory.limit_in_bytes", memory, true}, {"memory.memsw.limit_in_bytes", memory, false}, // no swap
		{"pids.max", int64(processes), true},
	}
	if g.version == 2 {
		limits[0].file = "memory.max"
		limits[1].file, limits[1].limit = "memory.swap.max", 0
	}
	for _, l := range limits {
		err := fs.ErrNotExist
		for _, directory := range made.directories { // one of them has the file
			if e := writeExisting(directory, l.file, l.limit); !errors.Is(e, fs.ErrNotExist) {
				err = e
			}
		}
		if err != nil && l.must {
			return made, fmt.Errorf("%s: %w", l.file, err)
		}
	}
	usage := "cpuacct.usage"
	if g.version == 2 {
		usage = "cpu.stat"
	}
	for _, directory := range made.directories {
		if file, err := os.Open(filepath.Join(directory, usage)); err == nil { // one of them has it, or none
			made.usage = file
		}
	}
	return made, nil
}

// used returns the core time of all processes that are or were in the group.
func (g *controlGroup) used() (used time.Duration, ok bool) {
	if g == nil || g.usage == nil {
		return 0, false
	}
	var text [128]byte // the count is at the beginning
	n, _ := g.usage.ReadAt(text[:], 0)
	if count, ok := bytes.CutPrefix(text[:n], []byte("usage_usec ")); ok { // version 2
		_, err := fmt.Sscan(string(count), &used)
		return used * time.Microsecond, err == nil
	}
	_, err := fmt.Sscan(string(text[:n]), &used)
	return used, err == nil
}

func writeExisting(directory, file string, limit int64) error {
	f, err := os.OpenFile(filepath.Join(directory, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strconv.FormatInt(limit, 10))
	return errors.Join(err, f.Close())
}

// admit puts a process into the group. Processes that it starts later are in the
// group, too.
func (g *controlGroup) admit(pid int) error {
	for _, directory := range g.directories {
		if err := write(directory, "cgroup.procs", strconv.Itoa(pid)); err != nil {
			return err
		}
	}
	return nil
}

// remove removes the group. Its processes have ended or are about to.
func (g *controlGroup) remove() error {
	if g == nil {
		return nil
	}
	var failed []error
	if g.usage != nil {
		failed = append(failed, g.usage.Close())
	}
	for _, directory := range g.directories {
		failed = append(failed, removeGroup(directory))
	}
	for _, lock := range g.locks {
		failed = append(failed, lock.Close())
	}
	return errors.Join(failed...)
}

// removeGroup kills the processes that a dead fork server left in the group, which
// happens without a pid namespace, and removes the group when they have ended.
func removeGroup(directory string) error {
	var err error
	for give := time.Now().Add(endTimeout); time.Now().Before(give); time.Sleep(time.Millisecond) {
		if err = os.Remove(directory); !errors.Is(err, syscall.EBUSY) {
			break
		}
		inside, _ := os.ReadFile(filepath.Join(directory, "cgroup.procs"))
		for _, field := range strings.Fields(string(inside)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// sweep removes the groups that killed pools left behind.
func (g *controlGroups) sweep() {
	for _, parent := range g.parents {
		left, _ := filepath.Glob(filepath.Join(parent, groupPrefix+"*"))
		for _, directory := range left {
			if filepath.Base(directory) != ownGroup {
				removeAbandoned(directory, os.Remove)
			}
		}
	}
}
