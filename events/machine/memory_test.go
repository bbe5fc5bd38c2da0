package machine

import (
	"os"
	"runtime"
	"testing"
	"testing/fstest"
)

func TestAvailableMemory(t *testing.T) {
	const meminfo = "MemTotal:       16000 kB\nMemFree:        100 kB\nMemAvailable:   8000 kB\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  uint64
		known bool
	}{
		"no /proc":         {nil, 0, false},
		"no group":         {map[string]string{"proc/meminfo": meminfo}, 8000 << 10, true},
		"an old kernel":    {map[string]string{"proc/meminfo": "MemTotal: 16000 kB\n"}, 0, false},
		"no limit":         {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n"}, 8000 << 10, true},
		"a limit":          {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "4096\n"}, 4096, true},
		"a larger limit":   {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "99999999999\n"}, 8000 << 10, true},
		"of a parent":      {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "8192", "sys/fs/cgroup/a/memory.max": "4096"}, 4096, true},
		"of a container":   {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "4096\n"}, 4096, true},
		"of a moved group": {map[string]string{"proc/self/cgroup": "0::/../b\n", "sys/fs/cgroup/memory.max": "4096\n"}, 4096, true},
		"version 1":        {map[string]string{"proc/self/cgroup": "4:cpu:/x\n9:memory:/a\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "4096\n"}, 4096, true},
		"both, the lowest": {map[string]string{"proc/meminfo": "MemAvailable: 2 kB\n", "proc/self/cgroup": "9:memory:/\n0::/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "4096\n", "sys/fs/cgroup/memory.max": "3000"}, 2048, true},
	} {
		fsys := fstest.MapFS{}
		for path, text := range c.files {
			fsys[path] = &fstest.MapFile{Data: []byte(text)}
		}
		if got, known := AvailableMemory(fsys); got != c.want || known != c.known {
			t.Errorf("%s: %d, %v, want %d, %v", name, got, known, c.want, c.known)
		}
	}
	if got, known := AvailableMemory(os.DirFS("/")); runtime.GOOS == "linux" && (!known || got < 1<<20) {
		t.Errorf("of this machine: %d, %v", got, known)
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 MiB", 900 << 20: "900 MiB", 9 << 30: "9216 MiB", 12 << 30: "12 GiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d bytes: %s, want %s", n, got, want)
		}
	}
}
