package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"codea1/consumers/execution/literal"
)

// TestIsolated has a candidate report everything that it can see and do.
func TestIsolated(t *testing.T) {
	p := openAt(t, LevelIsolated, quick)
	const code = `
import ctypes, os, socket, subprocess, time
libc = ctypes.CDLL(None, use_errno=True)

def fails(what, *arguments):
    try:
        what(*arguments)
    except (OSError, PermissionError, FileNotFoundError):
        return True
    return False

def refused(call, *arguments):
    return libc.syscall(call, *arguments) == -1

def fork_until_refused():
    children = 0
    try:
        while children < 1000:
            if os.fork() == 0:
                time.sleep(60)
            children += 1
    except OSError:
        return children < 100
    return False
`
	for call, want := range map[string]string{
		"os.getpid()":                "1",
		"os.getppid()":               "0",
		"os.getuid(), os.getegid()":  "(65534, 65534)",
		"os.uname().nodename":        "'sandbox'",
		"os.getcwd()":                fmt.Sprintf("'%s'", servers(p).python.scratch()),
		"sorted(os.listdir('/dev'))": "['null', 'random', 'urandom']",
		"[d for d in ('/proc/self', '/sys', '/root/.bashrc', '/home', '/etc/passwd', '/var', '/dev/shm') if os.path.exists(d)]": "[]",
		"fails(open, '/usr/new', 'w')":                                        "True",
		"fails(open, '/new', 'w')":                                            "True",
		"fails(os.mkdir, '/dev/new')":                                         "True",
		"fails(os.execv, '/usr/bin/python3', ['python3'])":                    "True",
		"fails(subprocess.run, ['/bin/true'])":                                "True",
		"fails(socket.socket)":                                                "True",
		"fails(socket.socket, socket.AF_UNIX)":                                "True",
		"fails(os.setuid, 0)":                                                 "True",
		"libc.mount(b'x', b'/tmp', b'tmpfs', 0, None)":                        "-1",
		"libc.unshare(0x10000000), libc.unshare(0x20000000)":                  "(-1, -1)", // a user namespace, a pid namespace
		"refused(56, 0x10000000 | 17, 0, 0, 0, 0)":                            "True",     // clone with a namespace (x86-64)
		"refused(435, 0, 0), ctypes.get_errno()":                              "(True, 38)",
		"refused(101, 0, 0, 0, 0)":                                            "True", // ptrace (x86-64)
		"libc.shmget(1, 4096, 0o1600), libc.msgget(1, 0o1600)":                "(-1, -1)",
		"fork_until_refused()":                                                "True",
		"fails(__import__('mmap').mmap, -1, 4096)":                            "True", // shared
		"open('/dev/null').read()":                                            "''",
		"len(open('/dev/urandom', 'rb').read(5))":                             "5",
		"(lambda a, b: a.send(b'pair') and b.recv(9))(*socket.socketpair())":  "b'pair'",
		"__import__('asyncio').run(__import__('asyncio').sleep(0, result=7))": "7",
		"__import__('tempfile').TemporaryFile().write(b'abc')":                "3",
		"__import__('ctypes').CDLL('libm.so.6') is not None":                  "True",
	} {
		if got := literal.Text(runOne(t, p, code, call)); got != want {
			t.Errorf("%s: got %s, want %s", call, got, want)
		}
	}
}

// TestScratchIsBounded fills the private directory with many files, each below
// the limit on one.
func TestScratchIsBounded(t *testing.T) {
	p := openAt(t, LevelIsolated, quick)
	code := "def f():\n written = 0\n try:\n  while written < 100 << 20:\n   with open(str(written), 'wb') as file: written += file.write(bytes(1 << 19))\n except OSError: pass\n return written <= 17 << 20"
	if got := literal.Text(runOne(t, p, code, "f()")); got != "True" {
		t.Errorf("got %s", got)
	}
}

func TestWeakerLevelHasToBeAccepted(t *testing.T) {
	config, err := quick.Complete()
	if err != nil {
		t.Fatal(err)
	}
	p, err := openLocal(t.Context(), config, nil) // as on a machine that gives no level
	if !errors.Is(err, ErrNotIsolated) || !strings.Contains(err.Error(), "confined") {
		t.Errorf("got %v, %v", p, err)
	}
}

// TestConfined: without namespaces the filter still holds.
func TestConfined(t *testing.T) {
	p := openAt(t, LevelConfined, quick)
	code := "import os, socket\ndef fails(f, *a):\n try: f(*a)\n except OSError: return True\n"
	got := literal.Text(runOne(t, p, code, "fails(socket.socket), fails(os.execv, '/bin/true', ['true']), fails(os.unshare, 1) if hasattr(os, 'unshare') else True"))
	if got != "(True, True, True)" {
		t.Errorf("got %s", got)
	}
}

// TestLandlock: without namespaces, a candidate's files are its directory and
// Python, and it signals nobody else.
func TestLandlock(t *testing.T) {
	p := openAt(t, LevelConfined, quick)
	if servers(p).version < landlockSignals {
		t.Skip("this kernel's Landlock has version", servers(p).version)
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("text"), 0o666); err != nil {
		t.Fatal(err)
	}
	code := `
import errno, os, signal, time
outside = ` + strconv.Quote(outside) + `

def refused(what, *arguments):
    try:
        return what(*arguments)
    except OSError as error:
        return error.errno in (errno.EACCES, errno.EPERM, errno.EXDEV)

def fork():
    while True:
        try:
            return os.fork()
        except BlockingIOError: # a full machine is not what is tested
            time.sleep(0.01)

def own():
    os.mkdir("d")
    open("d/f", "w").write("x")
    os.rename("d/f", "g")
    pid = fork()
    if pid == 0: signal.pause()
    os.kill(pid, signal.SIGTERM)
    return os.waitpid(pid, 0)[1], sorted(os.listdir(".")), len(open(os.__file__).read()) > 100, open(os.devnull, "w").write("x")
`
	for call, want := range map[string]string{
		"refused(open, outside)":                                 "True",
		"refused(open, outside, 'w')":                            "True",
		"refused(os.truncate, outside, 0)":                       "True",
		"refused(os.unlink, outside)":                            "True",
		"refused(os.link, outside, 'mine')":                      "True",
		"refused(os.rename, outside, 'mine')":                    "True",
		"refused(os.listdir, '/')":                               "True",
		"refused(os.listdir, '/proc')":                           "True",
		"refused(open, '/proc/self/environ')":                    "True",
		"refused(os.rmdir, os.getcwd())":                         "True",
		"refused(os.kill, os.getppid(), 0)":                      "True",
		"refused(os.kill, " + strconv.Itoa(os.Getpid()) + ", 0)": "True",
		"own()": "(15, ['d', 'g'], True, 1)",
	} {
		if got := literal.Text(runOne(t, p, code, call)); got != want {
			t.Errorf("%s: got %s, want %s", call, got, want)
		}
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "text" {
		t.Errorf("the file outside holds %q, %v", text, err)
	}
}

// A Python below /tmp is seen where it is, and candidates write elsewhere.
func TestIsolatedPythonBelowTmp(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "codea1-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	python, err := findPython(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(python.Executable, "-m", "venv", "--without-pip", dir).CombinedOutput(); err != nil {
		t.Skipf("this Python makes no environments: %v: %s", err, out)
	}
	config := Config{Workers: 1, Python: filepath.Join(dir, "bin", "python3")}
	p, err := OpenAt(t.Context(), config, LevelIsolated)
	if errors.Is(err, ErrNotIsolated) && !strings.Contains(err.Error(), "File exists") {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	const code = `
import os, tempfile

def look(environment):
    with tempfile.NamedTemporaryFile() as file:
        own = os.path.dirname(file.name) == os.getcwd()
    return os.path.exists(environment + "/pyvenv.cfg"), os.access(environment, os.W_OK), own
`
	report, err := p.Run(t.Context(), Program{Code: code}, []string{fmt.Sprintf("look(%q)", dir)})
	if err != nil {
		t.Fatal(err)
	}
	if got := show(report.Outcomes[0]); got != "(True, False, True)" {
		t.Errorf("environment there, writable, own directory for files: %s", got)
	}
}
