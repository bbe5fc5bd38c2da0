package deadletter_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/cockroachdb/datadriven"
	"go.uber.org/goleak"

	"codea1/events"
	"codea1/events/deadletter"
	"codea1/events/eventstest"
	"codea1/events/natsbus"
	"codea1/events/natsbus/natstest"
	"codea1/events/stage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestDeadLetter runs the transcript testdata/deadletter; -rewrite writes its
// answers.
//
//	pose slot=N [malformed] [newer]  publishes an event for a stage that handles no slot
//	fix slot=N                       lets it handle one
//	wait letters=N                   waits until there are that many dead letters
//	answered slot=N                  waits until the stage has handled a slot
//	drop slot=N                      ends the slot's group
//	codea1                           runs a command line; SLOT3 stands for the event ID of slot 3
func TestDeadLetter(t *testing.T) {
	const name = "night"
	server := natstest.Start(t)
	bus := server.Connect(t, natsbus.Config{})
	var fixed [8]atomic.Bool
	runWorker(t, bus, name, func(slot int) error {
		if fixed[slot].Load() {
			return nil
		}
		return errors.New("the table has no entry for this problem")
	})
	ids := strings.NewReplacer(
		"SLOT0", eventstest.Posed(name, 1, 0).ID, "SLOT1", eventstest.Posed(name, 1, 1).ID,
		"SLOT2", eventstest.Posed(name, 1, 2).ID, "SLOT3", eventstest.Posed(name, 1, 3).ID, "SERVER", server.URL())
	names := strings.NewReplacer(
		eventstest.Posed(name, 1, 0).ID, "SLOT0", eventstest.Posed(name, 1, 1).ID, "SLOT1",
		eventstest.Posed(name, 1, 2).ID, "SLOT2", eventstest.Posed(name, 1, 3).ID, "SLOT3", natsbus.PublicURL(server.URL()), "SERVER", server.URL(), "SERVER")
	// The times are the only output that differs between two runs of the test.
	now := regexp.MustCompile(`20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	eventually := func(is func() bool) {
		for ; !is(); time.Sleep(5 * time.Millisecond) {
			if ctx.Err() != nil {
				t.Fatal("it never happened")
			}
		}
	}
	datadriven.RunTest(t, "testdata/deadletter", func(t *testing.T, d *datadriven.TestData) string {
		slot := 0
		d.MaybeScanArgs(t, "slot", &slot)
		switch d.Cmd {
		case "pose":
			m := eventstest.Encode(eventstest.Posed(name, 1, slot))
			if d.HasArg("malformed") {
				m.Encoding, m.Data = events.EncodingNone, []byte("no msgpack")
			}
			if d.HasArg("newer") {
				m.SchemaVersion = 99
			}
			if err := bus.Publish(ctx, m); err != nil {
				t.Fatal(err)
			}
		case "fix":
			fixed[slot].Store(true)
		case "wait":
			n := 0
			d.ScanArgs(t, "letters", &n)
			eventually(func() bool {
				list, err := bus.DeadLetters(ctx, name)
				if err != nil {
					t.Fatal(err)
				}
				return len(list) == n
			})
		case "drop":
			m := eventstest.Encode(events.Caused(eventstest.Posed(name, 1, slot), "worker-0", eventstest.At,
				&events.GroupDropped{Stage: "worker", Reason: events.DropRetries, Step: 1, Slot: slot}))
			if err := bus.Publish(ctx, m); err != nil {
				t.Fatal(err)
			}
		case "answered":
			want := eventstest.CodeSampled(eventstest.Posed(name, 1, slot)).ID
			r, err := bus.Read(ctx, events.ReadConfig{Run: name, Types: []events.Type{events.TypeCodeSampled}})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			for m := (events.Message{}); m.ID != want; {
				if m, _, err = r.Next(ctx); err != nil {
					t.Fatal(err)
				}
			}
		case "codea1":
			return now.ReplaceAllString(names.Replace(codea1(ctx, t, strings.Fields(ids.Replace(d.Input)))), "NOW")
		default:
			t.Fatalf("unknown command %q", d.Cmd)
		}
		return ""
	})
}

// codea1 runs a command line and returns its output, or its error.
func codea1(ctx context.Context, t *testing.T, args []string, log ...func(context.Context, string, string, *slog.Logger) ([]events.DeadLetter, error)) string {
	t.Helper()
	var cli struct {
		DeadLetter deadletter.Command `cmd:"" name:"deadletter"`
	}
	for _, cli.DeadLetter.List.Log = range log {
	}
	var out bytes.Buffer
	parser, err := kong.New(&cli, kong.Name("codea1"), kong.Writers(&out, &out), kong.BindTo(ctx, (*context.Context)(nil)),
		kong.BindTo(&out, (*io.Writer)(nil)), kong.Bind(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	command, err := parser.Parse(args)
	if err == nil {
		err = command.Run()
	}
	if err != nil {
		return out.String() + "codea1: " + err.Error() + "\n"
	}
	return out.String()
}

// runWorker runs a stage that answers problem.posed unless fail says otherwise.
// It holds its dead letters for longer than the test lasts.
func runWorker(t *testing.T, bus events.Broker, name string, fail func(slot int) error) {
	s, err := stage.New(stage.Config{
		Bus: bus, Run: name, Name: "worker", Types: []events.Type{events.TypeProblemPosed}, MaxTries: 2, HoldDeadLetters: time.Hour,
		Backoff: stage.Backoff{Initial: time.Millisecond, Max: time.Millisecond},
		Handler: stage.Each(func(_ context.Context, e *events.Event) ([]*events.Event, error) {
			if err := fail(e.Payload.(*events.ProblemPosed).Plan.Slot); err != nil {
				return nil, err
			}
			return []*events.Event{eventstest.CodeSampled(e)}, nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); running.Wait() })
	for errors.Is(s.Health(ctx), stage.ErrNotRunning) { // the run exists once the stage consumes
		time.Sleep(time.Millisecond)
	}
}
