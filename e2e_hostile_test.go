package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"codea1/events"
	"codea1/events/eventstest"
	"codea1/events/natsbus"
	"codea1/events/rundir"
)

// undisturbed trains while local clients without a login and with that of the tap
// try to disturb it, while a client with the login of the stages takes the names of
// the events of a run of the same seed, and while a stage in another process helps.
// The run must be the wanted one.
func undisturbed(t *testing.T, args []string, sameSeed string, want *history, steps int) {
	dir := t.TempDir()
	p := start(t, dir, args...)
	address, _ := p.address(t)
	server, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	bus := "nats://" + server.Host
	refused := make(chan string, 1)
	helper := start(t, dir, "stage", events.StageExecution, "--run", "r", "--bus", bus,
		"--bus-user", natsbus.PipelineUser, "--bus-password-file", natsbus.PasswordFile(rundir.NATS(runPath(dir, "r")), natsbus.PipelineUser))
	stranger := start(t, dir, "stage", events.StageExecution, "--run", "r", "--bus", bus)
	go func() {
		<-stranger.ended
		sentence, err := oneSentence(stranger.stderr.String())
		if err != nil {
			sentence = err.Error()
		}
		refused <- sentence
	}()

	early := p.takeNames(t, dir, sameSeed)
	var denied atomic.Int64
	published := 0
	tap, err := nats.Connect(address, nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) { denied.Add(1) }))
	if err != nil {
		t.Fatal(err)
	}
	defer tap.Close()
	forged := make([]byte, 64<<10)
	for round := 0; ; round++ {
		select {
		case <-p.ended:
		default:
			// Without a login: a silent connection, noise, an event.
			for _, text := range []string{"", "\x00\xff\r\n", "PUB codea1.r.policy.updated.s000001-code 2\r\nhi\r\n", "CONNECT {}\r\nSUB > 1\r\n"} {
				if conn, err := net.Dial("tcp", server.Host); err == nil {
					defer conn.Close()
					_, _ = conn.Write([]byte(text)) // the server may have closed it
				}
			}
			for _, typ := range events.Types() {
				for _, group := range []string{"s000001-code", "s000002-q0001", "r"} {
					if tap.PublishRequest("codea1.r."+string(typ)+"."+group, "codea1.r.policy.updated.s000002-code", forged) == nil {
						published++
					}
				}
			}
			for _, request := range []string{"STREAM.DELETE.codea1-r", "STREAM.PURGE.codea1-r", "CONSUMER.DELETE.codea1-r." + events.StageRewards} {
				if tap.PublishRequest("$JS.API."+request, "_INBOX.x", nil) == nil {
					published++
				}
			}
			_ = tap.Flush() // the server may have ended
			time.Sleep(50 * time.Millisecond)
			continue
		}
		break
	}
	if code := p.wait(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	got := read(t, runPath(dir, "r"), steps)
	if diff := cmp.Diff(want, got, sameRun); diff != "" {
		t.Errorf("(-alone +among hostile clients):\n%s", diff)
	}
	if denied.Load() == 0 || published == 0 {
		t.Errorf("%d messages published by the tap and %d refusals", published, denied.Load())
	}
	early()
	sentence := <-refused
	for _, part := range []string{"Authorization Violation", "--bus-user", "--bus-password-file"} {
		if !strings.Contains(sentence, part) {
			t.Errorf("a stage without the login ends with %q", sentence)
		}
	}
	helper.signal(t, os.Interrupt)
	if code := helper.wait(t); code != 0 {
		t.Errorf("the helping stage ends with exit code %d", code)
	}
}

// disturb publishes events of other stages, and names their subjects for the
// answers to its requests, with the login of a stage that has no business with
// them. It ends with the test, which fails if the server refused nothing.
func (b *natsBroker) disturb(t *testing.T, run string) {
	t.Helper()
	const stage = events.StageEvaluation
	var denied atomic.Int64
	conn, err := nats.Connect(b.url(), nats.UserInfo(stage, "secret-of-"+stage), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrPermissionViolation) {
				denied.Add(1)
			}
		}))
	if err != nil {
		t.Fatal(err)
	}
	forged := eventstest.Encode(eventstest.Posed(run, 1, 0))
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for round := 1; ; round++ {
			for _, typ := range events.Types() {
				for _, group := range []string{fmt.Sprintf("s%06d-q%04d", round%9, round%5), fmt.Sprintf("s%06d-code", round%9), run} {
					subject := "codea1." + run + "." + string(typ) + "." + group
					m := nats.NewMsg(subject)
					forged.Headers("ce-", m.Header.Set)
					m.Data = forged.Data
					// An outage may be going on.
					if typ != events.TypeEvalScored && typ != events.TypeGroupDropped && typ != events.TypeStageHeartbeat {
						_ = conn.PublishMsg(m)
					}
					_ = conn.PublishRequest("CODEA1.API.STREAM.INFO.codea1-"+run, subject, nil)
					_ = conn.PublishRequest("CODEA1.API.DIRECT.GET.codea1-"+run+".codea1."+run+".problem.posed."+group, subject, nil)
				}
			}
			for _, request := range []string{"STREAM.DELETE.codea1-" + run, "STREAM.PURGE.codea1-" + run, "CONSUMER.DELETE.codea1-" + run + "." + events.StageRewards} {
				_ = conn.PublishRequest("CODEA1.API."+request, "_INBOX.x", nil)
			}
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-ended
		conn.Close()
		if denied.Load() == 0 {
			t.Error("the server refused nothing")
		}
	})
}
