package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"codea1/events/commandline"
)

const pythonRemedy = "install Python 3.9 or newer, or name one with --python or CODEA1_PYTHON"

// OldestPythonMinor is the minor version of the oldest Python 3 that runs the
// harness: ast.unparse and os.waitstatus_to_exitcode came with it.
const OldestPythonMinor = 9

// SupportsPython reports whether the harness runs on a version of Python.
func SupportsPython(version [2]int) bool {
	return version[0] == 3 && version[1] >= OldestPythonMinor
}

// interpreter is a Python that can run the harness.
type interpreter struct {
	Executable string   `json:"executable"` // the binary itself, not a shim
	Version    [2]int   `json:"version"`
	Build      string   `json:"build"`    // describes a build that is not the usual CPython; else empty
	Path       []string `json:"path"`     // where it finds modules, site-packages included
	Prefixes   []string `json:"prefixes"` // where it is installed; two for a virtual environment
}

// visible returns the paths of the machine that an isolated fork server sees:
// Python, shared libraries, and devices that cannot hold memory (/dev/zero, mapped
// shared, can). Other entries of Path, such as a project installed for editing, are
// not visible.
func (i interpreter) visible() []string {
	paths := []string{
		"/usr", "/lib", "/lib32", "/lib64", "/nix/store", "/etc/ld.so.cache", "/etc/alternatives",
		"/dev/null", "/dev/random", "/dev/urandom",
	}
	for _, p := range i.Prefixes {
		if filepath.IsAbs(p) && p != "/" {
			paths = append(paths, p)
		}
	}
	return paths
}

// scratch returns the private directory of an isolated candidate: /tmp, or
// /scratch where Python itself is installed below /tmp.
func (i interpreter) scratch() string {
	for _, p := range i.Prefixes {
		if p == "/tmp" || strings.HasPrefix(p, "/tmp/") {
			return "/scratch"
		}
	}
	return "/tmp"
}

// askScript finds the binary behind a shim such as pyenv's, which costs tens of
// milliseconds at every start, and the paths that the site module adds, which
// costs more. Python 2 can run it, too.
const askScript = `import json, platform, sys
build = platform.python_implementation()
if build == "CPython":
    build = "a free-threaded build" if "t" in getattr(sys, "abiflags", "") else "a debug build" if hasattr(sys, "gettotalrefcount") else ""
print(json.dumps({"executable": sys.executable, "version": sys.version_info[:2], "build": build, "path": [p for p in sys.path if p],
    "prefixes": [getattr(sys, "base_prefix", sys.prefix), sys.prefix]}))`

// findPython returns the interpreter of a name, or python3 or python if the name
// is empty.
func findPython(ctx context.Context, name string) (interpreter, error) {
	names := []string{"python3", "python"}
	if name != "" {
		names = []string{name}
	}
	var reasons []string
	for _, n := range names {
		found, err := askPython(ctx, n)
		if err == nil {
			return found, nil
		}
		if ctx.Err() != nil {
			return interpreter{}, ctx.Err()
		}
		reasons = append(reasons, fmt.Sprintf("%q %v", n, err))
	}
	err := fmt.Errorf("%w: %s; %s", ErrNoPython, strings.Join(reasons, ", "), pythonRemedy)
	if name != "" {
		err = commandline.Wrong(err)
	}
	return interpreter{}, err
}

func askPython(ctx context.Context, name string) (interpreter, error) {
	var python interpreter
	program, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrNotFound) {
		return python, errors.New("is not on PATH")
	}
	if err != nil {
		return python, errors.New("cannot be run as a program")
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ask := exec.CommandContext(ctx, program, "-E", "-s", "-c", askScript)
	ask.WaitDelay = time.Second
	out, err := ask.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && len(exit.Stderr) > 0 { // for example an incomplete standard library
			wrote := strings.TrimSpace(string(exit.Stderr))
			err = fmt.Errorf("%w: %s", err, wrote[strings.LastIndexByte(wrote, '\n')+1:])
		}
		return python, fmt.Errorf("does not start (%w)", err)
	}
	if err := json.Unmarshal(out, &python); err != nil || python.Executable == "" {
		return python, errors.New("does not answer like Python")
	}
	for i, p := range python.Prefixes {
		python.Prefixes[i] = filepath.Clean(p) // a relocatable Python has "/path/bin/.."
	}
	if !SupportsPython(python.Version) {
		return python, fmt.Errorf("is Python %d.%d", python.Version[0], python.Version[1])
	}
	// harness/pages.py depends on CPython's own allocator, which these builds lack.
	if python.Build != "" {
		return python, fmt.Errorf("is Python %d.%d, but %s, not the usual CPython", python.Version[0], python.Version[1], python.Build)
	}
	return python, nil
}
