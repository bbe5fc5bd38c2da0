package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rogpeppe/go-internal/testscript"

	"codea1/events"
	"codea1/events/rundir"
	"codea1/gpuworker/checkpoint/objects/s3test"
	"codea1/replay/eventlog"
)

// The test binary is also the program: testscript puts it on the PATH as codea1,
// and under that name it runs main. The tests therefore stop, kill and watch real
// processes.
func TestMain(m *testing.M) {
	s3test.Main()
	// The processes of a test often wait, for leases and for each other: more tests
	// than cores use the cores better. The flag -parallel overrides this.
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	os.Setenv("BUS_TOKEN", busToken) // the configuration of compose.yaml's server reads it
	testscript.Main(program{m}, map[string]func(){"codea1": main, "nats-server": natsServer})
}

// program is all tests, after which the run that they share is deleted.
type program struct{ tests *testing.M }

// Run runs the tests.
func (p program) Run() int {
	if flag.Lookup("test.bench").Value.String() == "" {
		debug.SetGCPercent(400) // a test parses many command lines, each of which makes 16 MB
	}
	defer func() { os.RemoveAll(sharedRun.dir) }()
	return p.tests.Run()
}

// thorough reports whether tests repeat themselves for confidence, and whether those
// run that cost much more than they add to quicker tests. CI sets the variable.
func thorough() bool { return os.Getenv("CODEA1_TEST_THOROUGH") == "1" }

// onlyThorough skips a test that costs much more than it adds to quicker tests.
func onlyThorough(t *testing.T, why string) {
	t.Helper()
	if !thorough() {
		t.Skip(why + ": CODEA1_TEST_THOROUGH=1 runs it")
	}
}

// patience bounds every wait for a process. A test that reaches it hangs.
const patience = 3 * time.Minute

// train returns the arguments of the smallest training that uses every feature:
// problems are posed again with tests of the Mistake Book, and the last mini-batch
// of a step is short. Half of the time of so short a training is the start of its
// sandboxes, so there is one.
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
		// The default would time out on a slow machine.
		"--call-timeout", "5s", "--sandboxes", "1",
	}, more...)
}

// child is a running codea1.
type child struct {
	command        *exec.Cmd
	stdout, stderr buffer
	ended          chan struct{}
}

// start runs codea1 in a directory, without settings from the environment, in a
// separate process group.
func start(t *testing.T, dir string, args ...string) *child {
	t.Helper()
	return startWith(t, dir, nil, args...)
}

// startWith is start with settings in the environment.
func startWith(t *testing.T, dir string, settings []string, args ...string) *child {
	t.Helper()
	p := &child{command: exec.Command("codea1", args...), ended: make(chan struct{})}
	p.command.Dir, p.command.Stdout, p.command.Stderr = dir, &p.stdout, &p.stderr
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, envPrefix) {
			p.command.Env = append(p.command.Env, v)
		}
	}
	// The test deletes the temporary files of a killed process.
	p.command.Env = append(p.command.Env, "TMPDIR="+t.TempDir())
	p.command.Env = append(p.command.Env, settings...)
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		p.command.Wait() // ProcessState has the result
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
func (p *child) wait(t *testing.T) int { t.Helper(); return p.waitFor(t, patience) }

// waitFor is wait with another limit.
func (p *child) waitFor(t *testing.T, limit time.Duration) int {
	t.Helper()
	select {
	case <-p.ended:
		return p.command.ProcessState.ExitCode()
	case <-time.After(limit):
		t.Fatalf("codea1 still runs after %v", limit)
		return 0
	}
}

// signal sends a signal to the process alone, not to its children.
func (p *child) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.command.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}

// interrupt stops a training.
func (p *child) interrupt(t *testing.T) {
	t.Helper()
	p.signal(t, os.Interrupt)
	p.interrupted(t)
}

// interrupted waits for the end of a training that got a signal. It may have just
// completed.
func (p *child) interrupted(t *testing.T) {
	t.Helper()
	if code := p.wait(t); code != exitInterrupted && code != 0 {
		t.Fatalf("exit code %d of an interrupted training", code)
	}
}

// alone waits until no child of an ended process is left.
func (p *child) alone(t *testing.T) {
	t.Helper()
	eventually(t, "the children of a killed codea1 end", func() bool {
		return errors.Is(syscall.Kill(-p.command.Process.Pid, 0), syscall.ESRCH)
	})
}

var tapLine = regexp.MustCompile(`(?m)^tap +NATS_URL=(nats://tap:\S+) nats sub '(codea1\.\S+\.>)'$`)

// address returns the address of a tap of the embedded server and the subject of
// the events, which the process prints.
func (p *child) address(t *testing.T) (address, subject string) {
	t.Helper()
	eventually(t, "codea1 names its bus", func() bool {
		if m := tapLine.FindStringSubmatch(p.stderr.String()); m != nil {
			address, subject = m[1], m[2]
			return true
		}
		select {
		case <-p.ended:
			t.Fatalf("codea1 ended with %v", p.command.ProcessState)
		default:
		}
		return false
	})
	return address, subject
}

// tap reads events like any NATS client until the process ends or see returns
// false. see gets the number of each event, from 1.
func (p *child) tap(t *testing.T, see func(n int, m *events.Message) bool) {
	t.Helper()
	address, subject := p.address(t)
	conn, err := nats.Connect(address, nats.NoReconnect())
	if err != nil {
		return // the process has ended already
	}
	defer conn.Close()
	messages := make(chan *nats.Msg, 4096)
	if _, err := conn.ChanSubscribe(subject, messages); err != nil {
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

// refused runs codea1, which must fail with one sentence, and returns the sentence.
func refused(t *testing.T, dir string, args ...string) string {
	t.Helper()
	p := start(t, dir, args...)
	if code := p.wait(t); code != exitFailed && code != exitUsage && code != exitNegative {
		t.Fatalf("exit code %d of a failure", code)
	}
	sentence, err := oneSentence(p.stderr.String())
	if err != nil {
		t.Fatal(err)
	}
	return sentence
}

// oneSentence returns the error that a failed codea1 wrote to standard error: the
// last line.
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

// required fails a test on CI, which installs everything that tests need, and
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

// history holds the results of a run, from its event log.
type history struct {
	Weights map[string]string                // SHA-256 of model.safetensors, by role and version
	Trained map[string][]string              // groups consumed, by role and version
	Rewards map[string]*events.GroupRewarded // by group
	Scores  map[string]*events.EvalScored    // by group
	Book    map[string][]string              // tests of the Mistake Book, by problem

	events   int
	shadowed int // events reward.shadowed
	started  []*events.RunStarted
	finished []*events.RunFinished
}

// read checks the whole log of a run, and that each group ends once and is trained
// on once.
func read(t *testing.T, run string, steps int) *history {
	t.Helper()
	log, err := eventlog.Open(rundir.Log(run), eventlog.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if _, err := log.Verify(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	last, _ := log.Last()
	rebuilt, err := log.BookAt(t.Context(), last)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(rebuilt.Encode(), log.Book().Encode()) {
		t.Error("the Mistake Book is not the one that the events make")
	}
	h := &history{
		Weights: map[string]string{}, Trained: map[string][]string{}, Book: map[string][]string{},
		Rewards: map[string]*events.GroupRewarded{}, Scores: map[string]*events.EvalScored{},
	}
	for _, id := range log.Book().Problems() {
		for _, e := range log.Book().Tests(id) {
			h.Book[id] = append(h.Book[id], fmt.Sprintf("%s == %s (%d)", e.Call, e.Expected, e.Count))
		}
	}
	posed := map[string]events.Plan{}
	ends := map[string]int{}
	for record, err := range log.Read(t.Context(), eventlog.ReadOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		e, err := record.Decode()
		if err != nil {
			t.Fatal(err)
		}
		h.events++
		switch p := e.Payload.(type) {
		case *events.RunStarted:
			h.started = append(h.started, p)
		case *events.RunFinished:
			h.finished = append(h.finished, p)
		case *events.ProblemPosed:
			posed[e.Group] = p.Plan
		case *events.GroupRewarded:
			h.Rewards[e.Group] = p
			ends[e.Group]++
		case *events.RewardShadowed:
			h.shadowed++
		case *events.EvalScored:
			h.Scores[e.Group] = p
			ends[e.Group]++
		case *events.GroupDropped:
			t.Errorf("group %s was dropped: %s, %s", e.Group, p.Reason, p.Detail)
			ends[e.Group]++
		case *events.PolicyUpdated:
			name := version(p.Role, p.Version)
			if _, twice := h.Weights[name]; twice {
				t.Errorf("%s was trained twice", name)
			}
			h.Weights[name], h.Trained[name] = p.Checkpoint.SHA256, p.Groups
		}
	}
	groups := map[int][]string{} // of the training steps, in slot order
	for _, id := range slices.SortedFunc(maps.Keys(posed), func(a, b string) int { return cmp.Compare(posed[a].Slot, posed[b].Slot) }) {
		if ends[id] != 1 {
			t.Errorf("group %s was rewarded or dropped %d times", id, ends[id])
		}
		if plan := posed[id]; plan.Purpose == events.PurposeTrain {
			groups[plan.Step] = append(groups[plan.Step], id)
		}
	}
	for id := range ends {
		if _, ok := posed[id]; !ok {
			t.Errorf("group %s came from nowhere", id)
		}
	}
	roles := h.started[0].Models.TrainedRoles()
	if len(groups) != steps || len(h.Weights) != len(roles)*steps {
		t.Errorf("%d steps posed and %d versions made, want %d and %d", len(groups), len(h.Weights), steps, len(roles)*steps)
	}
	for step, ids := range groups {
		for _, role := range roles {
			if name := version(role, step); !slices.Equal(h.Trained[name], ids) {
				t.Errorf("%s was trained on %v, step %d posed %v", name, h.Trained[name], step, ids)
			}
		}
	}
	return h
}

func version(role events.Role, n int) string { return fmt.Sprintf("%s v%d", role, n) }

// ended returns why the last attempt of a run ended.
func (h *history) ended() string {
	if len(h.finished) == 0 {
		return ""
	}
	return h.finished[len(h.finished)-1].Reason
}

func runPath(dir, name string) string { return filepath.Join(dir, rundir.Default, name) }
