package main

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"codea1/events"
)

// pythonLibrary is the folder of the Python package codea1-tap.
var pythonLibrary = filepath.Join("schemas", "python")

// tapPython returns a Python with the libraries of codea1-tap.
func tapPython(t *testing.T) string {
	t.Helper()
	python := cmp.Or(os.Getenv("TAP_PYTHON"), "python3")
	if out, err := exec.Command(python, "-c", "import msgpack, nats, zstandard").CombinedOutput(); err != nil {
		required(t, "no msgpack, nats and zstandard in "+python+", or in TAP_PYTHON: "+string(out))
	}
	return python
}

// startPython starts a program with the Python package, until the test ends.
func startPython(t *testing.T, program string, args ...string) (p *exec.Cmd, stdout, stderr *buffer, ended <-chan struct{}) {
	t.Helper()
	p = exec.Command(tapPython(t), append([]string{"-u", "-B", program}, args...)...)
	stdout, stderr = &buffer{}, &buffer{}
	p.Env = append(os.Environ(), "PYTHONPATH="+pythonLibrary)
	p.Stdout, p.Stderr = stdout, stderr
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Wait() // ProcessState has the result
	}()
	t.Cleanup(func() {
		p.Process.Kill()
		<-done
		if t.Failed() {
			t.Logf("%s\n%s%s", program, stderr.String(), stdout.String())
		}
	})
	return p, stdout, stderr, done
}

// A rewards stage in Python takes the place of ours: the run completes, and its log has
// the rewards, the choices and the Mistake Book that ours would have made.
func TestRewardsStageInPython(t *testing.T) {
	t.Parallel()
	tapPython(t)
	dir, b := t.TempDir(), startNATS(t)
	c := &crew{t: t, dir: dir, run: crewRun(t), bus: func(user string) []string { return b.flags(t, user) }}
	c.endWithTest()
	c.recorder(train("--steps", "3", "--heldout", ""))
	for _, stage := range []string{"rollout-code", "rollout-test", "execution", "evaluation", "trainer-code", "trainer-test"} {
		c.add(stage)
	}
	_, _, stderr, ended := startPython(t, filepath.Join(pythonLibrary, "examples", "rewards.py"), b.url(), c.run, busToken)
	go func() {
		<-ended
		c.end() // without rewards, the run would not end
	}()
	c.wait()
	select {
	case <-ended:
		t.Fatal("the stage in Python ended before the run")
	default:
	}
	if text := stderr.String(); text != "" {
		t.Errorf("the stage in Python reports %s", text)
	}
	run := runPath(dir, c.run)
	h := read(t, run, 3)
	if h.ended() != events.RunCompleted {
		t.Errorf("ended with %q", h.ended())
	}
	made := strings.Count(must(t, dir, "tap", c.run, "--json", "--where", `type == "group.rewarded" && source == "rewards-python"`), "\n")
	if made != 9 {
		t.Errorf("%d groups were rewarded in Python, want 9", made)
	}
	verified := must(t, dir, "replay", "verify", c.run)
	if !regexp.MustCompile(`(?m)^rewards +9 `).MatchString(verified) {
		t.Errorf("the rewards differ:\n%s", verified)
	}
}
