package main

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"codea1/events"
	"codea1/events/attempt"
	"codea1/events/rundir"
	"codea1/gpuworker/checkpoint/objects/s3test"
)

// crew is a run with separate processes for every stage. A process that dies is
// replaced until the run is completed.
type crew struct {
	t   *testing.T
	dir string
	run string
	bus func(user string) []string       // flags
	on  func(stage string, start func()) // starts a process on another host; nil for this one
	// store is used by the stages, each of which has a run directory of its own. Only
	// the recorders share one. nil: all share one.
	store   *s3test.Server
	members []*member
	work    sync.WaitGroup
	// steady says that no process may end before the run does.
	steady   bool
	patience time.Duration // more than crewPatience
}

// member is one replica of a stage.
type member struct {
	args []string

	mu      sync.Mutex
	process *child
	starts  int
	ended   bool
}

// maxStarts bounds the processes of a member. A stage that needs more cannot run.
const maxStarts = 200

// workers are the members of a crew besides its recorder.
var workers = []string{
	"rollout-code", "rollout-code", "rollout-test", "rollout-test", "execution", "execution",
	"rewards", "evaluation", "trainer-code", "trainer-test",
}

// newCrew starts the stages of a run. The recorder gets the arguments of a
// training.
func newCrew(t *testing.T, dir string, on broker, args []string) *crew {
	t.Helper()
	return newCrewWith(t, dir, on, nil, args)
}

// newCrewWith is newCrew with machines that share a store of checkpoints and no
// directory.
func newCrewWith(t *testing.T, dir string, on broker, store *s3test.Server, args []string) *crew {
	t.Helper()
	c := &crew{t: t, dir: dir, run: crewRun(t), store: store, bus: func(user string) []string { return on.flags(t, user) }}
	c.endWithTest()
	c.recorder(args)
	for _, stage := range workers {
		c.add(stage)
	}
	return c
}

// recorder adds the recorder, with the arguments of a training.
func (c *crew) recorder(args []string) {
	of := slices.DeleteFunc(slices.Clone(args[1:]), func(a string) bool { return a == "--no-dashboard" })
	c.add("recorder", append(of, "--ack-wait", "500ms")...)
}

func (c *crew) endWithTest() { c.t.Cleanup(c.end) }

// end kills all members for good and waits for their ends.
func (c *crew) end() {
	for _, m := range c.members {
		m.signal(syscall.SIGCONT)
		m.end()
	}
	c.work.Wait()
}

// crewRun returns the name of the run. It is unique because tests may share a
// broker.
func crewRun(t *testing.T) string {
	return regexp.MustCompile(`[^a-zA-Z0-9]+`).ReplaceAllString(t.Name(), "-")
}

// add starts a member and replaces its process when that dies.
func (c *crew) add(stage string, args ...string) *member {
	args = append(append([]string{"stage", stage, "--run", c.run, "--lease-ttl", "1s"}, c.bus(stage)...), args...)
	if c.store != nil {
		args = append(args, "--runs-dir", fmt.Sprintf("machine-%d", len(c.members)))
		if stage == events.StageRecorder {
			args[len(args)-1] = rundir.Default
		}
	}
	m := &member{args: args}
	c.members = append(c.members, m)
	m.next(c)
	c.work.Add(1)
	go func() {
		defer c.work.Done()
		for {
			<-m.process.ended
			if m.process.command.ProcessState.Success() {
				return
			}
			if c.steady && !m.isEnded() {
				c.t.Errorf("%s ended: %v\n%s", strings.Join(m.args, " "), m.process.command.ProcessState, m.process.stderr.String())
			}
			if !m.next(c) {
				return
			}
		}
	}()
	return m
}

// member returns the first member of a stage.
func (c *crew) member(stage string) *member {
	return c.members[slices.IndexFunc(c.members, func(m *member) bool { return m.args[1] == stage })]
}

// next starts the next process of the member, unless the member has ended.
func (m *member) next(c *crew) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return false
	}
	if m.starts++; m.starts > maxStarts {
		c.t.Errorf("%s was started %d times\n%s", strings.Join(m.args, " "), maxStarts, m.process.stderr.String())
		return false
	}
	var settings []string
	if c.store != nil {
		settings = []string{"CODEA1_CHECKPOINT_STORE=" + c.store.Address("runs")}
	}
	begin := func() { m.process = startWith(c.t, c.dir, settings, m.args...) }
	if c.on == nil {
		begin()
	} else {
		c.on(m.args[1], begin)
	}
	return true
}

func (m *member) isEnded() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ended
}

// end kills the member for good.
func (m *member) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
	_ = m.process.command.Process.Kill() // it may have ended
}

// signal sends a signal to the member's present process, without its children.
func (m *member) signal(s syscall.Signal) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = m.process.command.Process.Signal(s) // it may have ended
}

// wait waits until the run is completed and every member has ended by itself.
func (c *crew) wait() {
	c.t.Helper()
	done := make(chan struct{})
	go func() { c.work.Wait(); close(done) }()
	for limit := time.After(crewPatience + c.patience); ; {
		select {
		case <-done:
			return
		case <-limit:
			c.t.Fatal("the run does not end")
		}
	}
}

// tap calls see with the number of every event of the run, from 1, until the
// crew has ended, and returns then.
func (c *crew) tap(see func(n int, m *events.Message)) {
	c.t.Helper()
	var cli CLI
	parser, err := newParser(&cli)
	if err != nil {
		c.t.Fatal(err)
	}
	flags, err := parser.Parse(append([]string{"stage", "rewards", "--run", c.run}, c.bus(operator)...))
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(c.t.Context())
	defer stop()
	bus, err := flags.Selected().Target.Addr().Interface().(*WorkerStage).Bus.Join(ctx, "tap", slog.New(slog.DiscardHandler))
	if err != nil {
		c.t.Fatal(err)
	}
	defer bus.Close()
	var tapping sync.WaitGroup
	defer tapping.Wait()
	tapping.Go(func() {
		// A reader would create the run, without the settings of the recorder.
		err := attempt.AwaitRun(ctx, bus, c.run, slog.New(slog.DiscardHandler))
		var reader events.Reader
		if err == nil {
			reader, err = bus.Read(ctx, events.ReadConfig{Run: c.run})
		}
		var m events.Message
		for n := 1; err == nil; n++ {
			if m, _, err = reader.Next(ctx); err == nil {
				see(n, &m)
			}
		}
		if ctx.Err() == nil {
			c.t.Errorf("tap: %v", err)
		}
	})
	c.wait()
	stop()
}

// tapAndKill follows the run until the crew has ended. It kills each of the members
// twice, one at each event of a type, and each has to die at least once.
func (c *crew) tapAndKill(members []*member, on events.Type) {
	c.t.Helper()
	killed := 0
	c.tap(func(_ int, m *events.Message) {
		if m.Type == on && killed < 2*len(members) {
			members[killed%len(members)].signal(syscall.SIGKILL)
			killed++
		}
	})
	if killed < len(members) {
		c.t.Errorf("%d of %d processes were killed", killed, len(members))
	}
}

// crewPatience bounds the time of a crew. A crew that reaches it hangs.
const crewPatience = 10 * time.Minute
