package tap

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kfake"

	"codea1/events"
	"codea1/events/connect"
	"codea1/events/eventstest"
	"codea1/events/natsbus"
	"codea1/events/rundir"
	"codea1/replay/eventlog"
	"codea1/replay/eventlog/eventlogtest"
	"codea1/replay/internal/replaytest"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC
	replaytest.Main(m)
}

// patience bounds every wait. A test that reaches it hangs.
const patience = 3 * time.Minute

// print runs a command and returns its output.
func print(t *testing.T, c Command) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t, c, &out)
	return out.String(), err
}

func run(t *testing.T, c Command, out io.Writer) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if c.Bus.URL == "" {
		c.Bus.URL = connect.Embedded
	}
	c.Host = embedded{}
	return c.Run(ctx, out, slog.New(slog.DiscardHandler))
}

// embedded is the Host of runs with an embedded server.
type embedded struct{}

func (embedded) Bus(string) (*connect.Flags, error) {
	return &connect.Flags{URL: connect.Embedded}, nil
}

// ids returns the IDs and the positions in lines of JSON.
func ids(t *testing.T, lines string) (ids, positions []string) {
	t.Helper()
	for line := range strings.Lines(lines) {
		var e struct{ ID, Position string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		ids, positions = append(ids, e.ID), append(positions, e.Position)
	}
	return ids, positions
}

// idsOf returns the IDs of messages.
func idsOf(messages []events.Message) (all []string) {
	for i := range messages {
		all = append(all, messages[i].ID)
	}
	return all
}

// finished returns the directory of a run with a log that holds the messages.
func finished(t *testing.T, messages []events.Message) string {
	t.Helper()
	run, log := eventlogtest.Run(t, messages)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return run
}

// The lines for people of a finished run.
func TestLines(t *testing.T) {
	dir := finished(t, replaytest.Tell(t))
	datadriven.RunTest(t, "testdata/lines", func(t *testing.T, d *datadriven.TestData) string {
		c := Command{RunName: dir}
		for _, arg := range d.CmdArgs {
			value := strings.Join(arg.Vals, ",")
			switch arg.Key {
			case "type":
				c.Type = append(c.Type, events.Type(value))
			case "role":
				c.Role = append(c.Role, events.Role(value))
			case "group":
				c.Group = append(c.Group, value)
			case "from":
				c.From = value
			case "limit":
				d.ScanArgs(t, "limit", &c.Limit)
			case "text":
				c.Text = true
			}
		}
		c.Where = strings.TrimSpace(d.Input)
		out, err := print(t, c)
		if err != nil {
			return out + err.Error() + "\n"
		}
		return out
	})
}

// JSON lines have every event once, with the fields of the schemas, and a tap goes on
// after the position of each.
func TestJSONLines(t *testing.T) {
	story := replaytest.Tell(t)
	dir := finished(t, story)
	out, err := print(t, Command{RunName: dir, JSON: true})
	if err != nil {
		t.Fatal(err)
	}
	have, positions := ids(t, out)
	if d := cmp.Diff(idsOf(story), have); d != "" {
		t.Fatal(d)
	}
	for i, line := range strings.Split(strings.TrimSpace(out), "\n") {
		var e struct {
			Payload map[string]any
			Time    time.Time
			Type    events.Type
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if !e.Time.Equal(story[i].Time) || e.Type != story[i].Type || len(e.Payload) == 0 {
			t.Errorf("%s", line)
		}
	}
	for _, i := range []int{0, len(story) / 2, len(story) - 1} {
		out, err := print(t, Command{RunName: dir, JSON: true, From: positions[i]})
		if err != nil {
			t.Fatal(err)
		}
		if rest, _ := ids(t, out); !slices.Equal(rest, idsOf(story)[i+1:]) {
			t.Errorf("after position %s: %d events, want %d", positions[i], len(rest), len(story)-i-1)
		}
	}
}

// For any text of a model, a terminal shows a line of bounded length and obeys
// nothing.
func TestHostileTexts(t *testing.T) {
	long := strings.Repeat("x", events.MaxTextBytes-100)
	for _, text := range []string{
		"\x1b]0;title\a\x1b[2J\x1b[31mred", "\u202egnp.exe\u2066\u200b\ufeff", "a\rb\x00c\x7f\u009b31m\u2028\u2029", "\xff\xfe\xc3(", "\U000e0001tag", long, "\x1b" + long,
		strings.Repeat("line\n", 100_000), strings.Repeat("\u202e", 100_000),
	} {
		posed := eventstest.Posed("r", 1, 0)
		p := *posed.Payload.(*events.ProblemPosed)
		p.Problem.Question, p.Problem.ID = text, strings.Repeat("\x1b[31m", 20)
		posed.Payload = &p
		for _, e := range []*events.Event{posed, {Envelope: posed.Envelope, Payload: &events.GroupDropped{Stage: text, Reason: events.DropReason(text), Detail: text}}} {
			for _, l := range []lines{{}, {text: true}, {json: true}} {
				out := string(l.line(e, "1"))
				if !utf8.ValidString(out) {
					t.Errorf("%.20q: not UTF-8", text)
				}
				for line := range strings.Lines(out) {
					if len(line) > 4096 && !l.json {
						t.Errorf("%.20q: a line of %d bytes", text, len(line))
					}
					for _, r := range strings.TrimSuffix(line, "\n") {
						if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x200b && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0xfeff || r > 0xe0000 {
							t.Fatalf("%.20q: a terminal obeys %U", text, r)
						}
					}
				}
				if n := strings.Count(out, "\n"); n > 2*maxTextLines {
					t.Errorf("%.20q: %d lines", text, n)
				}
			}
		}
	}
}

// Mistyped flags are refused with the remedy.
func TestMistypedFlags(t *testing.T) {
	dir := finished(t, replaytest.Tell(t))
	for _, c := range []struct {
		command Command
		want    string
	}{
		{Command{From: "yesterday"}, "--from \"yesterday\": want now, start, a time such as"},
		{Command{From: "100000"}, "--from 100000: the log ends at event"},
		{Command{Type: []events.Type{"code.sample"}}, "--type: unknown event type \"code.sample\"; known are"},
		{Command{Role: []events.Role{"coder"}}, "--role: "},
		{Command{Where: "rewrd > 0.5"}, "--where: unknown name rewrd (1:1); the names are group, "},
		{Command{Where: "reward"}, "--where: expected bool, but got float64"},
		{Command{Where: "reward >"}, "--where: "},
	} {
		c.command.RunName = dir
		_, err := print(t, c.command)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if _, err := print(t, Command{RunName: "nowhere", RunsDir: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "--bus names the bus") {
		t.Error(err)
	}
}

// A tap of a bus reads every stored event from a position, once, and new events
// without one. It ends some time after the run is completed.
func TestTapOfABus(t *testing.T) {
	for name, open := range map[string]func(*testing.T, string) connect.Flags{"NATS": startNATS, "Kafka": startKafka} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flags := open(t, replaytest.Run)
			story := replaytest.Tell(t)
			bus, err := flags.Open(t.Context(), "test", slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer bus.Close()
			if _, err := print(t, Command{RunName: "other", Bus: flags}); err == nil || !strings.HasPrefix(err.Error(), "there is no run other at ") {
				t.Errorf("another run: %v", err)
			}
			half := len(story) / 2
			if err := bus.Publish(t.Context(), story[:half]...); err != nil {
				t.Fatal(err)
			}
			out, err := print(t, Command{RunName: replaytest.Run, Bus: flags, JSON: true, From: "start", Limit: half})
			if err != nil {
				t.Fatal(err)
			}
			first, positions := ids(t, out)
			if err := bus.Publish(t.Context(), story[half:]...); err != nil {
				t.Fatal(err)
			}
			out, err = print(t, Command{RunName: replaytest.Run, Bus: flags, JSON: true, From: positions[half-1]})
			if err != nil {
				t.Fatal(err)
			}
			rest, _ := ids(t, out)
			if d := cmp.Diff(idsOf(story), append(first, rest...)); d != "" {
				t.Error(d)
			}
			if lag, err := bus.Lag(t.Context(), replaytest.Run, "tap"); err == nil {
				t.Errorf("the tap is a worker set with %+v", lag)
			}
		})
	}
}

func startNATS(t *testing.T, run string) connect.Flags {
	store := t.TempDir()
	s, err := natsbus.StartServer(natsbus.ServerConfig{StoreDir: store, Run: run, SyncInterval: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	return connect.Flags{URL: s.URL(""), User: natsbus.PipelineUser, PasswordFile: natsbus.PasswordFile(store, natsbus.PipelineUser), Replicas: 1}
}

func startKafka(t *testing.T, _ string) connect.Flags {
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	return connect.Flags{URL: connect.KafkaScheme + fake.ListenAddrs()[0], Replicas: 1, Partitions: 1}
}

// A tap of a run in progress on the embedded server uses the read-only login, and
// ends with the server. A server that was killed leaves an address at which nobody
// answers: the log is read then.
func TestTapOfAnEmbeddedServer(t *testing.T) {
	t.Parallel()
	story := replaytest.Tell(t)
	dir := filepath.Join(t.TempDir(), replaytest.Run)
	log := eventlogtest.Open(t, eventlog.Dir(dir), eventlog.Options{})
	eventlogtest.Append(t, log, eventlogtest.Recorded(0, story[:3]...))
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(rundir.NATS(dir), rundir.DirMode); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(natsbus.AddressFile(rundir.NATS(dir)), []byte("127.0.0.1:1"), rundir.SecretMode); err != nil {
		t.Fatal(err)
	}
	out, err := print(t, Command{RunName: dir, JSON: true})
	if err != nil {
		t.Fatal(err)
	}
	if have, _ := ids(t, out); !slices.Equal(have, idsOf(story[:3])) {
		t.Errorf("the log has %d events, the tap shows %d", 3, len(have))
	}

	server, err := natsbus.StartServer(natsbus.ServerConfig{StoreDir: rundir.NATS(dir), Run: replaytest.Run, SyncInterval: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Shutdown()
	bus, err := natsbus.Connect(t.Context(), natsbus.Config{Server: server})
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	login := connect.Flags{URL: server.URL(natsbus.TapUser), Replicas: 1}
	if _, err := print(t, Command{RunName: replaytest.Run, Bus: login, From: "start"}); err == nil || !strings.HasPrefix(err.Error(), "--from: the login tap follows new events only") {
		t.Errorf("history with the read-only login: %v", err)
	}
	var taps [2]output
	var running sync.WaitGroup
	for i, c := range []Command{{RunName: dir, JSON: true}, {RunName: replaytest.Run, Bus: login, JSON: true}} {
		taps[i].first = make(chan struct{})
		running.Go(func() {
			if err := run(t, c, &taps[i]); err != nil {
				t.Error(err)
			}
		})
	}
	beats := 0
	for i := range taps { // until both taps are connected
		for waiting := true; waiting; {
			select {
			case <-taps[i].first:
				waiting = false
			case <-time.After(20 * time.Millisecond):
				beats++
				beat := events.New(replaytest.Run, fmt.Sprint("beat-", beats), "test", replaytest.Time, &events.StageHeartbeat{Stage: "test", Beat: beats})
				if err := bus.Publish(t.Context(), eventstest.Encode(beat)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for range 2 { // a publisher may repeat itself
		if err := bus.Publish(t.Context(), story...); err != nil {
			t.Fatal(err)
		}
	}
	running.Wait()
	for i := range taps {
		have, _ := ids(t, taps[i].String())
		if n := len(have) - len(story); n < 1 || !slices.Equal(have[n:], idsOf(story)) {
			t.Errorf("tap %d shows %d events, want %d after the heartbeats", i, len(have), len(story))
		}
	}
}

// output is the output of a tap. first is closed at the first line.
type output struct {
	bytes.Buffer
	first chan struct{}
}

func (o *output) Write(p []byte) (int, error) {
	if o.Len() == 0 {
		close(o.first)
	}
	return o.Buffer.Write(p)
}
