package execution

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

const pythonRemedy = "install Python 3.9 or newer, or name one with --python or CODEA1_PYTHON"

// FindPython returns the path of the interpreter that name stands for, or of
// python3 or python if name is empty. It looks behind a shim such as pyenv's,
// which would cost tens of milliseconds at every start.
func FindPython(ctx context.Context, name string) (string, error) {
	names := []string{"python3", "python"}
	if name != "" {
		names = []string{name}
	}
	var reasons []string
	for _, n := range names {
		path, err := askPython(ctx, n)
		if err == nil {
			return path, nil
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		reasons = append(reasons, fmt.Sprintf("%q %v", n, err))
	}
	return "", fmt.Errorf("%w: %s; %s", ErrNoPython, strings.Join(reasons, ", "), pythonRemedy)
}

func askPython(ctx context.Context, name string) (string, error) {
	found, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrNotFound) {
		return "", errors.New("is not on PATH")
	}
	if err != nil {
		return "", errors.New("is no program that can be run")
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	ask := exec.CommandContext(ctx, found, "-c",
		"import sys; print(*sys.version_info[:2]); print(sys.executable)")
	ask.WaitDelay = time.Second
	out, err := ask.Output()
	if err != nil {
		return "", fmt.Errorf("does not start (%v)", err)
	}
	var major, minor int
	var executable string
	version, executable, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if _, err := fmt.Sscan(version, &major, &minor); err != nil || executable == "" {
		return "", errors.New("does not answer like Python")
	}
	if major != 3 || minor < 9 {
		return "", fmt.Errorf("is Python %d.%d", major, minor)
	}
	return executable, nil
}
