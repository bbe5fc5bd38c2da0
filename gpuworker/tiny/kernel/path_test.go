package kernel

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

func TestUseSwitchesPaths(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		if !strings.HasSuffix(t.Name(), "/"+Name()) {
			t.Errorf("%s runs on %s", t.Name(), Name())
		}
	})
	before := Name()
	if err := Use("gpu"); !errors.Is(err, ErrUnknownPath) {
		t.Errorf("Use(gpu) = %v, want ErrUnknownPath", err)
	}
	for _, name := range known {
		if err := Use(name); err != nil && !errors.Is(err, ErrUnsupportedPath) {
			t.Errorf("Use(%s) = %v, want nil or ErrUnsupportedPath", name, err)
		}
	}
	use(t, before)
}

// TestVariable runs this test binary with each setting.
func TestVariable(t *testing.T) {
	if os.Getenv("CODEA1_KERNEL_TEST") != "" {
		if err := Check(); err != nil {
			func() {
				defer func() { _, _ = os.Stdout.WriteString("panic: " + recover().(error).Error() + "\n") }()
				Dot(nil, nil)
			}()
			return
		}
		Dot(nil, nil)
		_, _ = os.Stdout.WriteString("path: " + Name() + "\n")
		return
	}
	for setting, want := range map[string]string{
		"":       "path: " + Names()[0],
		"scalar": "path: scalar",
		"Scalar": `panic: CODEA1_KERNEL: unknown kernel path: "Scalar" (known: avx512, avx2, neon, scalar)`,
	} {
		command := exec.Command(os.Args[0], "-test.run=^TestVariable$")
		command.Env = append(os.Environ(), "CODEA1_KERNEL_TEST=1", Variable+"="+setting)
		out, err := command.CombinedOutput()
		if errors.Is(err, syscall.ENOEXEC) {
			t.Skip("this test runs under an emulator, its copies would not")
		}
		if err != nil {
			t.Fatalf("%s=%q: %v: %s", Variable, setting, err, out)
		}
		if !strings.Contains(string(out), want+"\n") {
			t.Errorf("%s=%q printed %q, want the line %q", Variable, setting, out, want)
		}
	}
}
