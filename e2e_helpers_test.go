package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rogpeppe/go-internal/testscript"

	"codea1/events"
)

// The test binary is also the program: run under the name codea1, which
// testscript puts on the PATH, it is main. So the tests stop, kill and watch
// real processes.
func TestMain(m *testing.M) {
	os.Setenv("BUS_TOKEN", busToken) // the configuration of compose.yaml's server reads it
	testscript.Main(m, map[string]func(){"codea1": main})
}

// thorough reports whether tests repeat themselves for confidence. CI sets the
// variable; without it each behaviour is tested once.
func thorough() bool { return os.Getenv("CODEA1_TEST_THOROUGH") == "1" }

// patience bounds every wait for a process. It is long because it decides
// nothing: a test that gets there has hung.
const patience = 90 * time.Second

// train are the arguments of a training that is as small as one can be and
// still meet every stage: questions come back with tests of the Mistake Book,
// and the last mini-batch of a step is short.
func train(more ...string) []string {
	testdata, err := filepath.Abs("testdata")
	if err != nil {
		panic(err)
	}
	return append([]string{
		"train", "--no-dashboard",
		"--problems", filepath.Join(testdata, "problems.jsonl"), "--heldout", filepath.Join(testdata, "heldout.jsonl"),
		"--problems-per-step", "3", "--problems-per-update", "2", "--answers", "2", "--suites", "2",
		"--eval-answers", "2", "--eval-suites", "1",
		// Slow machines must not turn a verdict into a time-out.
		"--call-timeout", "5s",
	}, more...)
}

// process is a running codea1.
type process struct {
	command        *exec.Cmd
	stdout, stderr buffer
	ended          chan struct{}
}

// start runs codea1 in a directory, without settings from the environment, in
// a process group of its own.
func start(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	return startWith(t, dir, nil, args...)
}

// startWith is start with settings in the environment.
func startWith(t *testing.T, dir string, settings []string, args ...string) *process {
	t.Helper()
	p := &process{command: exec.Command("codea1", args...), ended: make(chan struct{})}
	p.command.Dir, p.command.Stdout, p.command.Stderr = dir, &p.stdout, &p.stderr
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, envPrefix) {
			p.command.Env = append(p.command.Env, v)
		}
	}
	// What a killed process leaves behind goes with the test.
	p.command.Env = append(p.command.Env, "TMPDIR="+t.TempDir())
	p.command.Env = append(p.command.Env, settings...)
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		p.command.Wait() // how it ended is in ProcessState
	}()
	t.Cleanup(func() {
		p.command.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("codea1 %s\n%s%s", strings.Join(args, " "), p.stderr.String(), p.stdout.String())
		}
	})
	return p
}

// wait returns the exit code; -1 for a process that was killed.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
		return p.command.ProcessState.ExitCode()
	case <-time.After(patience):
		t.Fatalf("codea1 still runs after %v", patience)
		return 0
	}
}

// signal sends a signal to the process alone, not to its children.
func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.command.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}

// alone waits until no child of an ended process is left.
func (p *process) alone(t *testing.T) {
	t.Helper()
	eventually(t, "the children of a killed codea1 end", func() bool {
		return errors.Is(syscall.Kill(-p.command.Process.Pid, 0), syscall.ESRCH)
	})
}

var tapLine = regexp.MustCompile(`(?m)^tap +nats sub -s (nats://\S+) 'codea1\.>'$`)

// address returns where the process says that its events can be tapped.
func (p *process) address(t *testing.T) string {
	t.Helper()
	var address string
	eventually(t, "codea1 names its bus", func() bool {
		if m := tapLine.FindStringSubmatch(p.stderr.String()); m != nil {
			address = m[1]
			return true
		}
		select {
		case <-p.ended:
			t.Fatalf("codea1 ended with %v", p.command.ProcessState)
		default:
		}
		return false
	})
	return address
}

// tap follows the process as any NATS client would, until it ends or see
// returns false; see gets every event's number, from 1.
func (p *process) tap(t *testing.T, see func(n int, m *events.Message) bool) {
	t.Helper()
	conn, err := nats.Connect(p.address(t), nats.NoReconnect())
	if err != nil {
		return // it has ended already, or so the caller will find out
	}
	defer conn.Close()
	messages := make(chan *nats.Msg, 4096)
	if _, err := conn.ChanSubscribe("codea1.>", messages); err != nil {
		return
	}
	for n := 1; ; n++ {
		select {
		case msg := <-messages:
			m, err := events.ParseMessage("ce-", msg.Header.Get, msg.Data)
			if err != nil {
				t.Fatalf("%s: %v", msg.Subject, err)
			}
			if !see(n, &m) {
				return
			}
		case <-p.ended:
			return
		case <-time.After(patience):
			t.Fatalf("nothing happens for %v", patience)
		}
	}
}

// must runs codea1 to its end and returns what it printed.
func must(t *testing.T, dir string, args ...string) string {
	t.Helper()
	p := start(t, dir, args...)
	if code := p.wait(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	return p.stdout.String()
}

// refused runs codea1, wants it to end with exit code 1 and one sentence, and
// returns the sentence.
func refused(t *testing.T, dir string, args ...string) string {
	t.Helper()
	p := start(t, dir, args...)
	if code := p.wait(t); code != 1 {
		t.Fatalf("exit code %d, want 1", code)
	}
	sentence, err := oneSentence(p.stderr.String())
	if err != nil {
		t.Fatal(err)
	}
	return sentence
}

// oneSentence returns the error in what a failed codea1 wrote to standard
// error: one line, the last.
func oneSentence(stderr string) (string, error) {
	const prefix = "codea1: "
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	last := lines[len(lines)-1]
	if !strings.HasPrefix(last, prefix) {
		return "", errors.New("standard error does not end with one line of the error")
	}
	for _, line := range lines[:len(lines)-1] {
		if strings.HasPrefix(line, prefix) || strings.HasPrefix(line, "goroutine ") {
			return "", errors.New("standard error holds more than one error")
		}
	}
	return strings.TrimPrefix(last, prefix), nil
}

func eventually(t *testing.T, what string, happens func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !happens(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v: %s", patience, what)
		}
	}
}

// required fails a test on CI, where everything it needs is installed, and
// skips it elsewhere.
func required(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("cannot be left out on CI: %s", why)
	}
	t.Skip(why)
}

// buffer is a bytes.Buffer that can be read while a process writes to it.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
