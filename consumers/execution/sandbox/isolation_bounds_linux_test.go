package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"codea1/consumers/execution/internal/sandboxtest"
	"codea1/consumers/execution/literal"
)

// TestCandidateIsBounded has several processes of one candidate take as much
// memory as each may. They cannot hold it all, and the fork server lives on.
func TestCandidateIsBounded(t *testing.T) {
	t.Parallel()
	const code = `
import os, time

def hold(processes, mib):
    """How many processes held that much when the first of them ended. All of
    them hold it long enough to be found out."""
    ready, say = os.pipe()
    os.set_blocking(ready, False)
    for _ in range(processes):
        if os.fork() == 0:
            held = [b"x" * (1 << 20) for _ in range(mib)]
            os.write(say, b"x")
            time.sleep(60)
    held = b""
    while len(held) < processes and not os.waitpid(-1, os.WNOHANG)[0]:
        try:
            held += os.read(ready, processes)
        except BlockingIOError:
            time.sleep(0.001)
    found_out = time.monotonic() + 3
    while processes > 1 and len(held) == processes and time.monotonic() < found_out:
        time.sleep(0.001)
        if os.waitpid(-1, os.WNOHANG)[0]:
            return len(held) - 1
    return len(held)
`
	for _, level := range []Level{LevelIsolated, LevelConfined} {
		for name, watchOnly := range map[string]bool{"group": false, "watch": true} {
			t.Run(string(level)+"/"+name, func(t *testing.T) {
				if level == LevelConfined {
					sandboxtest.OnlyThorough(t, "the bounds of both levels are the same")
				}
				config := Config{Workers: 1, CallTimeout: 4 * time.Second, MemoryBytes: 240 << 20, CacheBytes: -1, watchOnly: watchOnly}
				p := openAt(t, level, config)
				if !watchOnly && servers(p).bounds.groups == nil {
					t.Skip("this machine gives no control groups:", servers(p).bounds.ungrouped)
				}
				if watchOnly && !canWatch() {
					t.Skip("processes cannot be watched here")
				}
				pid := forkServerPID(p)
				var got []string
				for _, call := range []string{"hold(1, 60)", "hold(10, 60)", "hold(1, 60)"} {
					report, err := p.Run(t.Context(), Program{Code: code}, []string{call})
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, show(report.Outcomes[0]))
				}
				if got[0] != "1" || got[1] == "10" || got[2] != "1" {
					t.Errorf("got %q; want 1, less than 10, 1", got)
				}
				if forkServerPID(p) != pid {
					t.Error("the fork server did not outlive it")
				}
				if group := forkServerOf(p).group; group != nil {
					if most, err := group.most(); err != nil || most > servers(p).bounds.memory {
						t.Errorf("it held %d MiB at most, %v; the limit is %d", most>>20, err, servers(p).bounds.memory>>20)
					}
				}
			})
		}
	}
}

// most returns the most memory, in bytes, that the group has held so far.
func (g *controlGroup) most() (int64, error) {
	for _, directory := range g.directories {
		for _, file := range []string{"memory.max_usage_in_bytes", "memory.peak"} {
			if text, err := os.ReadFile(filepath.Join(directory, file)); err == nil {
				return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			}
		}
	}
	return 0, fs.ErrNotExist
}

// TestKilledPoolIsSweptUp kills a process that has a pool. The next pool removes
// the directory that the killed one left behind, and nothing that is in use.
func TestKilledPoolIsSweptUp(t *testing.T) {
	if os.Getenv("CODEA1_TEST_HOLD_POOL") != "" {
		p := openOwn(t, LevelIsolated, quick)
		fmt.Println("root", servers(p).root)
		time.Sleep(10 * time.Minute) // it is killed long before
		return
	}
	holder := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledPoolIsSweptUp$")
	holder.Env = append(os.Environ(), "CODEA1_TEST_HOLD_POOL=1")
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	root := ""
	for lines := bufio.NewScanner(out); root == "" && lines.Scan(); {
		root, _ = strings.CutPrefix(lines.Text(), "root ")
	}
	other := openOwn(t, LevelIsolated, quick) // sweeps, too early
	if _, err := os.Stat(root); err != nil {
		t.Fatal("a directory in use was removed:", err)
	}
	_ = holder.Process.Kill()
	_ = holder.Wait()
	// Its fork server ends by itself, and only then its group can go.
	for give := time.Now().Add(endTimeout); len(leftBy(t, holder.Process.Pid, root)) > 0 && time.Now().Before(give); {
		openOwn(t, LevelIsolated, quick)
		time.Sleep(10 * time.Millisecond)
	}
	if left := leftBy(t, holder.Process.Pid, root); len(left) > 0 {
		t.Errorf("%q are still there", left)
	}
	if _, err := os.Stat(servers(other).root); err != nil {
		t.Error("the directory of a pool in use was removed:", err)
	}
}

// leftBy returns the directory and control groups of a process's pool.
func leftBy(t *testing.T, pid int, root string) []string {
	t.Helper()
	var left []string
	if _, err := os.Stat(root); !errors.Is(err, os.ErrNotExist) {
		left = append(left, root)
	}
	groups, _ := findControlGroups()
	if groups != nil {
		for _, parent := range groups.parents {
			found, _ := filepath.Glob(filepath.Join(parent, fmt.Sprintf("codea1-%d-*", pid)))
			left = append(left, found...)
		}
	}
	return left
}

func TestBoundsInWords(t *testing.T) {
	p := openAt(t, LevelIsolated, Config{Workers: 1, MemoryBytes: 128 << 20, watchOnly: true})
	if got := p.Describe().Bounds; !strings.Contains(got, "208 MiB") || !strings.Contains(got, "looked at every 20ms") {
		t.Error(got)
	}
	if literal.Text(runOne(t, p, "", "1")) != "1" {
		t.Error("no value")
	}
}
