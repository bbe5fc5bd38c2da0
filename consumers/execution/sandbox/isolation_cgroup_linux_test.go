package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codea1/consumers/execution/literal"
)

func TestParseControlGroups(t *testing.T) {
	for _, c := range []struct {
		name, mounts, own string
		version           int
		parents           []string
		err               string
	}{
		{
			name:    "second version",
			mounts:  "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
			own:     "0::/user.slice/user-1000.slice/run-1.scope\n",
			version: 2, parents: []string{"/sys/fs/cgroup/user.slice/user-1000.slice/run-1.scope"},
		},
		{
			name:    "a mount of a part, as in a container",
			mounts:  "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
			own:     "0::/docker/abc/app\n",
			version: 2, parents: []string{"/sys/fs/cgroup/app"},
		},
		{
			name: "first version, and a second one without controllers",
			mounts: "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n" +
				"39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n" +
				"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n" +
				"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n",
			own:     "8:pids:/\n4:memory:/job/7\n1:cpu,cpuacct:/\n0::/\n",
			version: 1, parents: []string{"/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/memory/job/7", "/sys/fs/cgroup/pids"},
		},
		{
			name:   "none",
			mounts: "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n",
			own:    "0::/\n",
			err:    "no cgroup file system",
		},
		{name: "no table", own: "what\n", err: "no group in"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseControlGroups([]byte(c.mounts), []byte(c.own))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %+v, %v", got, err)
				}
				return
			}
			if err != nil || got.version != c.version || !slices.Equal(got.parents, c.parents) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// TestDelegate is about the second version's rule that a group with processes
// hands nothing down. A plain directory stands in for the file system.
func TestDelegate(t *testing.T) {
	group := func(t *testing.T, handed, processes string) string {
		directory := filepath.Join(t.TempDir(), "own")
		for path, text := range map[string]string{"cgroup.subtree_control": handed, "cgroup.procs": processes} {
			if err := os.MkdirAll(directory, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(directory, path), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return directory
	}
	read := func(parts ...string) string {
		text, err := os.ReadFile(filepath.Join(parts...))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}

	own := group(t, "cpu memory pids\n", "12\n13\n")
	if got, err := delegate(own, 12); err != nil || got != own {
		t.Errorf("handed down already: %s, %v", got, err)
	}
	if got, err := delegate(filepath.Join(own, ownGroup), 12); err != nil || got != own {
		t.Errorf("moved before: %s, %v", got, err)
	}

	own = group(t, "", "12\n")
	if got, err := delegate(own, 12); err != nil || got != own {
		t.Errorf("alone: %s, %v", got, err)
	}
	if got := read(own, ownGroup, "cgroup.procs"); got != "12" {
		t.Errorf("it moved %q out of the way", got)
	}
	if got := read(own, "cgroup.subtree_control"); got != "+cpu" { // the last of two requests
		t.Errorf("it handed %q down", got)
	}

	own = group(t, "", "12\n13\n")
	if _, err := delegate(own, 12); err == nil || !strings.Contains(err.Error(), "Delegate=yes") {
		t.Errorf("with others: %v", err)
	}
}

// TestEndedProcessesCount: the core time of processes that ended is counted, even if
// nobody waited for them.
func TestEndedProcessesCount(t *testing.T) {
	p := openOwn(t, LevelIsolated, Config{Workers: 1, CallTimeout: time.Minute, JobTimeout: time.Minute})
	group := forkServerOf(p).group
	before, ok := group.used()
	if !ok {
		t.Skip("this machine does not count the core time of groups:", p.Describe().Bounds)
	}
	const code = `
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)

def burn(processes, seconds):
    ends, say = os.pipe()
    for _ in range(processes):
        if os.fork() == 0:
            while time.process_time() < seconds:
                pass
            os._exit(0)
    os.close(say)
    return os.read(ends, 1), os.times().children_user
`
	if got := literal.Text(runOne(t, p, code, "burn(6, 0.1)")); got != "(b'', 0.0)" {
		t.Errorf("got %s", got)
	}
	after, _ := group.used()
	if used := after - before; used < 550*time.Millisecond {
		t.Errorf("%v are counted; want those of six processes with 0.1 s each", used)
	}
}
