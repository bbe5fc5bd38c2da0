package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"codea1/consumers/execution/literal"
)

// runOne runs one call that must return a value.
func runOne(t *testing.T, p *Pool, code, call string) literal.Value {
	t.Helper()
	report, err := p.Run(t.Context(), Program{Code: code}, []string{call})
	if err != nil {
		t.Fatal(err)
	}
	if !report.Loads || report.Outcomes[0].Value == nil {
		t.Fatalf("no value: %+v", report)
	}
	return report.Outcomes[0].Value
}

func processExists(pid int) bool { return syscall.Kill(pid, 0) == nil }

// descendants returns the processes below one, by a look through /proc.
func descendants(t testing.TB, ancestor int) []int {
	t.Helper()
	parents := map[int]int{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		t.Skip("processes cannot be listed:", err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		var pid, parent int
		var state string
		_, after, _ := strings.Cut(string(text), ")")
		if _, err := fmt.Sscan(after, &state, &parent); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscan(string(text), &pid); err != nil {
			t.Fatal(err)
		}
		parents[pid] = parent
	}
	var found []int
	for pid := range parents {
		for up := parents[pid]; up > 1; up = parents[up] {
			if up == ancestor {
				found = append(found, pid)
				break
			}
		}
	}
	return found
}

func TestSurvivorsAreEnded(t *testing.T) {
	for _, level := range levels {
		p := openAt(t, level, quick)
		for name, code := range map[string]string{
			"child":            "def f():\n if os.fork() == 0: time.sleep(60)\n return 1",
			"child, own group": "def f():\n if os.fork() == 0:\n  os.setsid()\n  time.sleep(60)\n time.sleep(0.02)\n return 1",
			"daemon": `
def f():
    r, w = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(w, b"%d" % os.getpid())
            os.closerange(0, 64)
            time.sleep(60)
        os._exit(0)
    return int(os.read(r, 20))
`,
		} {
			returned := literal.Text(runOne(t, p, "import os, time\n"+code, "f()"))
			runOne(t, p, "", "1") // begins when the other is no more
			if pid, err := strconv.Atoi(returned); err == nil && pid > 1 && level != LevelIsolated && processExists(pid) {
				t.Errorf("%s, %s: process %d is still there, and no child of the fork server", level, name, pid)
			}
			if left := descendants(t, forkServerPID(p)); len(left) > 1 { // the next child waits
				t.Errorf("%s, %s: processes %d are still there", level, name, left)
			}
		}
	}
}

func TestChildrenShareNothing(t *testing.T) {
	for _, level := range levels {
		t.Run(string(level), func(t *testing.T) { testShareNothing(t, openAt(t, level, quick)) })
	}
}

func testShareNothing(t *testing.T, p *Pool) {
	runOne(t, p, "import sys, os, builtins\nsys.leak = builtins.leak = 1\nopen('leak', 'w').close()\nos.mkdir('d')\nopen('d/leak', 'w').close()\nos.chmod('d', 0)", "1")
	got := literal.Text(runOne(t, p, "import sys, os, builtins", "(hasattr(sys, 'leak'), hasattr(builtins, 'leak'), os.listdir('.'))"))
	if want := "(False, False, [])"; got != want {
		t.Errorf("the next child sees %s, want %s", got, want)
	}
	for name, code := range map[string]string{
		"removes its directory": "os.rmdir(d)",
		"moves its directory":   "os.rename(d, d + '-moved')",
		"makes it a link":       "os.rmdir(d); os.symlink('/', d)",
		"makes it a file":       "os.rmdir(d); open(d, 'w').close()",
		"locks it":              "os.makedirs('a/b'); os.chmod('a/b', 0); os.chmod('a', 0); os.chmod('.', 0)",
		"fills it":              "for i in range(500): open(str(i), 'w').close()",
	} {
		pid := forkServerPID(p)
		// An isolated candidate is refused some of it.
		runOne(t, p, "import os\nd = os.getcwd()\ntry:\n "+code+"\nexcept OSError: pass", "1")
		if got := literal.Text(runOne(t, p, "import os\nopen('mine', 'w').close()", "os.listdir('.')")); got != "['mine']" {
			t.Errorf("%s: the next child sees %s", name, got)
		}
		if forkServerPID(p) != pid {
			t.Errorf("%s: the fork server did not outlive it", name)
		}
	}
	// A module left in the work directory is not imported, nor by a new fork server.
	runOne(t, p, "open('json.py', 'w').write('1/0')\nopen('heapq.py', 'w').write('1/0')", "1")
	runOne(t, p, "import heapq, json", "1")
}

func TestDescriptorsOfAChild(t *testing.T) {
	p := openPool(t, quick)
	got := literal.Text(runOne(t, p, "import os\ndef f():\n found = []\n for d in range(64):\n  try: os.fstat(d)\n  except OSError: continue\n  found.append(d)\n return found", "f()"))
	if want := "[0, 1, 2, 3]"; got != want {
		t.Errorf("a child holds %s, want %s", got, want)
	}
}

// killer ends its fork server whenever it runs.
const killer = "import os, signal, time\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(60)"

func TestForkServerDiesBetweenJobs(t *testing.T) {
	p := openPool(t, quick)
	if err := syscall.Kill(forkServerPID(p), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := literal.Text(runOne(t, p, "x = 5", "x")); got != "5" {
		t.Errorf("got %s", got)
	}
}

func TestForkServerDiesInAJob(t *testing.T) {
	p := openAt(t, LevelOpen, quick) // where a candidate can reach its fork server
	marker := filepath.Join(t.TempDir(), "tried")
	// The first try kills its fork server; the second finds the marker.
	code := "import os, signal, time\nif not os.path.exists(" + strconv.Quote(marker) + "):\n" +
		" open(" + strconv.Quote(marker) + ", 'w').close()\n os.kill(os.getppid(), signal.SIGKILL)\n time.sleep(60)\n"
	if got := literal.Text(runOne(t, p, code, "6 * 7")); got != "42" {
		t.Errorf("got %s", got)
	}
	if _, err := os.Stat(marker); err != nil {
		t.Error("the first try never ran:", err)
	}
}

// TestProgramThatEndsTheSandboxIsScored: a program that ends its fork server each
// time, when it loads or in a call, has crashed; it is not masked.
func TestProgramThatEndsTheSandboxIsScored(t *testing.T) {
	config := quick
	config.Retries = -1
	p := openAt(t, LevelOpen, config) // where a candidate can reach its fork server
	for _, c := range []struct{ name, code, want string }{
		{"when it loads", killer, "false not run not run not run"},
		{"in a call", "import os, signal, time\ndef f(x):\n if x < 1: return x\n os.kill(os.getppid(), signal.SIGKILL)\n time.sleep(60)", "true 0 crashed crashed"},
		// The kernel ends the program when its fork server ends, perhaps before the
		// program has returned.
		{"and returns", "import os, signal, time\ndef f(x):\n if x < 1: return x\n os.kill(os.getppid(), signal.SIGSTOP)\n os.kill(os.getppid(), signal.SIGKILL)\n return x", "true 0 (1|crashed) (2|crashed)"},
	} {
		report, err := p.Run(t.Context(), Program{Code: c.code}, []string{"f(0)", "f(1)", "f(2)"})
		if err != nil {
			t.Errorf("%s: %v; want a verdict", c.name, err)
			continue
		}
		got := fmt.Sprint(report.Loads)
		for _, o := range report.Outcomes {
			got += " " + show(o)
		}
		if !regexp.MustCompile("^" + c.want + "$").MatchString(got) {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
		if got := literal.Text(runOne(t, p, "", "1")); got != "1" {
			t.Errorf("the pool is not fit for the next job: %s", got)
		}
	}
}

// TestSandboxErrorIsNoVerdict: where the machine no longer starts fork servers, the
// program is not blamed.
func TestSandboxErrorIsNoVerdict(t *testing.T) {
	p := openOwn(t, LevelOpen, Config{Workers: 1, Retries: -1})
	servers(p).python.Executable = filepath.Join(t.TempDir(), "removed")
	report, err := p.Run(t.Context(), Program{Code: killer}, []string{"1"})
	var failed *Error
	if !errors.As(err, &failed) {
		t.Fatalf("got %+v, %v; want a *Error", report, err)
	}
}

// TestReloadsAreBounded: a program that answers once and then neither runs nor loads
// has raised in the calls that are left, so it cannot choose its own tests.
func TestReloadsAreBounded(t *testing.T) {
	p := openAt(t, LevelOpen, quick) // where a candidate can count how often it was loaded
	const crashes = "\ndef f(x): return x if x != 1 else os._exit(1)"
	for _, c := range []struct{ name, code, want string }{
		{"never again", "if loads > 1: 1/0", "0 crashed raised raised"},
		{"ends its process", "if loads > 1: os._exit(1)", "0 crashed raised raised"},
		{"ends its fork server", "if loads > 1: os.kill(os.getppid(), 9), time.sleep(60)", "0 crashed crashed crashed"},
		{"after some tries", "if 1 < loads < 4: 1/0", "0 crashed 2 3"},
		{"each time", "", "0 crashed 2 3"},
	} {
		count := filepath.Join(t.TempDir(), "count")
		code := "import os, time\nopen(" + strconv.Quote(count) + ", 'a').write('x')\nloads = os.path.getsize(" + strconv.Quote(count) + ")\n" + c.code + crashes
		report, err := p.Run(t.Context(), Program{Code: code, EntryPoint: "f"}, []string{"f(0)", "f(1)", "f(2)", "f(3)"})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range report.Outcomes {
			got = append(got, show(o))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestCloseRemovesWhatIsLocked(t *testing.T) {
	config := quick
	config.Retries = -1
	p, err := OpenAt(t.Context(), config, LevelOpen)
	if err != nil {
		t.Fatal(err)
	}
	code := "import os\nos.makedirs('a/b')\nos.chmod('a/b', 0)\nos.chmod('a', 0)\nos.chmod('.', 0)\n" + killer
	before := forkServerPID(p)
	if _, err := p.Run(t.Context(), Program{Code: code}, []string{"1"}); err != nil || forkServerPID(p) == before {
		t.Errorf("the fork server outlived it: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(servers(p).root); !errors.Is(err, os.ErrNotExist) {
		t.Error("the work directory is still there:", err)
	}
}

func TestJobTimeout(t *testing.T) {
	t.Parallel()
	config := quick
	config.JobTimeout = 3 * config.CallTimeout
	p := openPool(t, config)
	report, err := p.Run(t.Context(), Program{Code: "def f(x):\n while x: pass"}, []string{"f(0)", "f(1)", "f(1)", "f(1)", "f(1)", "f(1)"})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[Kind]int{}
	for _, o := range report.Outcomes {
		kinds[o.Kind]++
	}
	if kinds[Returned] != 1 || kinds[TimedOut] < 1 || kinds[NotRun] < 2 || report.Outcomes[5].Kind != NotRun {
		t.Errorf("got %v: %+v", kinds, report.Outcomes)
	}
}

func TestCancel(t *testing.T) {
	config := quick
	config.CallTimeout = time.Minute
	p := openPool(t, config)
	ctx, cancel := context.WithCancel(t.Context())
	var running errgroup.Group
	for range 3 { // one runs, two wait for the slot
		running.Go(func() error {
			_, err := p.Run(ctx, Program{Code: "while True: pass"}, []string{"1"})
			if !errors.Is(err, context.Canceled) {
				return errors.Join(errors.New("want context.Canceled, have"), err)
			}
			return nil
		})
	}
	cancel()
	if err := running.Wait(); err != nil {
		t.Error(err)
	}
	if got := literal.Text(runOne(t, p, "", "1")); got != "1" {
		t.Errorf("got %s", got)
	}
}

func TestClose(t *testing.T) {
	p, err := Open(t.Context(), quick)
	if err != nil {
		t.Fatal(err)
	}
	pid := forkServerPID(p)
	for range 2 {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if processExists(pid) {
		t.Error("the fork server is still there")
	}
	if _, err := os.Stat(servers(p).root); !errors.Is(err, os.ErrNotExist) {
		t.Error("the work directory is still there:", err)
	}
	if _, err := p.Run(t.Context(), Program{}, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("Run after Close: %v", err)
	}
}

func TestNoPython(t *testing.T) {
	directory := t.TempDir()
	program := func(name, script string) string {
		path := filepath.Join(directory, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	torn := program("torn", `printf 'Traceback\nNo module named json\n' >&2; exit 1`)
	two := program("two", `echo '{"executable": "/usr/bin/python2", "version": [2, 7], "build": "", "path": []}'`)
	old := program("old", `echo '{"executable": "/usr/bin/python3", "version": [3, 8], "build": "", "path": []}'`)
	free := program("free", `echo '{"executable": "/usr/bin/python3.14t", "version": [3, 14], "build": "a free-threaded build", "path": []}'`)
	for name, want := range map[string]string{
		"no-such-python": `no usable Python 3: "no-such-python" is not on PATH; install Python 3.9 or newer, or name one with --python or CODEA1_PYTHON`,
		two:              `"` + two + `" is Python 2.7; install Python 3.9 or newer`,
		old:              `"` + old + `" is Python 3.8; install Python 3.9 or newer`,
		free:             `"` + free + `" is Python 3.14, but a free-threaded build, not the usual CPython; install Python 3.9 or newer`,
		"/etc/passwd":    `"/etc/passwd" cannot be run as a program`,
		"true":           `"true" does not answer like Python`,
		torn:             `"` + torn + `" does not start (exit status 1: No module named json)`,
		"false":          `"false" does not start`,
	} {
		_, err := Open(t.Context(), Config{Python: name})
		if !errors.Is(err, ErrNoPython) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := Open(t.Context(), Config{}); !errors.Is(err, ErrNoPython) || !strings.Contains(err.Error(), `"python3" is not on PATH, "python" is not on PATH`) {
		t.Errorf("empty PATH: %v", err)
	}
}

func TestConfig(t *testing.T) {
	for want, c := range map[string]Config{
		"workers":      {Workers: -1},
		"call timeout": {CallTimeout: -1},
		"job timeout":  {CallTimeout: time.Second, JobTimeout: time.Millisecond},
		"memory":       {MemoryBytes: 1 << 20},
		"file size":    {FileBytes: -1},
		"value size":   {ValueBytes: 1},
		"retries":      {Retries: 1000},
		"level":        {Level: "safe"},
	} {
		if _, err := Open(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want it to name %s", c, err, want)
		}
	}
}
