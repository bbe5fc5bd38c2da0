package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"codea1/events"
	"codea1/events/natsbus"
	"codea1/events/rundir"
	"codea1/replay/eventlog"
)

// samples returns a message of every type: of a run, or a new one.
func samples(t *testing.T, run string) map[events.Type]events.Message {
	t.Helper()
	log, err := eventlog.Open(rundir.Log(run), eventlog.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	of := make(map[events.Type]events.Message)
	for r, err := range log.Read(t.Context(), eventlog.ReadOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := of[r.Message.Type]; !ok {
			m := r.Message
			m.Data = bytes.Clone(m.Data)
			of[m.Type] = m
		}
	}
	rewarded := of[events.TypeGroupRewarded]
	e, err := rewarded.Decode()
	if err != nil {
		t.Fatal(err)
	}
	plan, _ := events.PlanOf(e.Payload)
	for _, p := range []events.Payload{
		&events.StageHeartbeat{Stage: "x"}, &events.GroupDropped{Purpose: events.PurposeTrain, Step: 1, Stage: "x", Reason: events.DropRetries},
		&events.CodeJudged{Posed: *mustPayload(t, of, func(p *events.ProblemPosed) { p.Plan.Answers = 1 }), Codes: []string{"x"}},
		&events.RewardShadowed{Plan: plan, Shadows: []events.ShadowReward{{Recipe: "x", Failure: "x"}}},
	} {
		if of[p.EventType()], err = events.Encode(events.New("r", "x", "x", time.Now(), p)); err != nil {
			t.Fatal(err)
		}
	}
	if len(of) != len(events.Types()) {
		t.Fatalf("samples of %d types, want %d", len(of), len(events.Types()))
	}
	return of
}

// bomb is 256 MiB of zeros, compressed to some kilobytes.
func bomb(t *testing.T) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	zeros := w.EncodeAll(make([]byte, 256<<20), nil)
	if len(zeros) > events.MaxPayloadBytes {
		t.Fatalf("a bomb of %d bytes", len(zeros))
	}
	return zeros
}

// garbage returns messages that are no events of run r: every type with every kind
// of damage, each on a subject of its own.
func garbage(t *testing.T, of map[events.Type]events.Message, round int) []*nats.Msg {
	t.Helper()
	noise := make([]byte, 300)
	source := rand.NewChaCha8([32]byte{byte(round)})
	_, _ = source.Read(noise)
	zeros := bomb(t)
	payload := map[string]func(m *events.Message){
		"noise":    func(m *events.Message) { m.Encoding, m.Data = events.EncodingNone, noise },
		"unused":   func(m *events.Message) { m.Encoding, m.Data = events.EncodingNone, []byte{0xc1} },
		"empty":    func(m *events.Message) { m.Encoding, m.Data = events.EncodingNone, nil },
		"cut":      func(m *events.Message) { m.Data = m.Data[:len(m.Data)-1] },
		"more":     func(m *events.Message) { m.Data = append(bytes.Clone(m.Data), 0xc0) },
		"newer":    func(m *events.Message) { m.SchemaVersion = 999 },
		"bomb":     func(m *events.Message) { m.Encoding, m.Data = events.EncodingZstd, zeros },
		"encoding": func(m *events.Message) { m.Encoding = "\x1b[2Jbr" },
		"long-ago": func(m *events.Message) { m.Time = time.Date(1, 2, 3, 4, 5, 6, 7, time.UTC) },
		"other-id": func(m *events.Message) { m.ID = strings.Repeat("ab", 16) },
		"unrelated": func(m *events.Message) {
			m.CausationID, m.CausationHash = strings.Repeat("ab", 16), strings.Repeat("cd", 32)
		},
	}
	header := map[string]func(h nats.Header){
		"no-type":   func(h nats.Header) { h.Del("ce-type") },
		"bad-id":    func(h nats.Header) { h.Set("ce-id", "\x1b]0;owned\x07") },
		"bad-time":  func(h nats.Header) { h.Set("ce-time", "yesterday") },
		"other-run": func(h nats.Header) { h.Set("ce-run", "another") },
		"elsewhere": func(h nats.Header) { h.Set("ce-subject", "elsewhere") },
		"large":     func(h nats.Header) { h.Set("ce-source", strings.Repeat("x", 32<<10)) },
	}
	var all []*nats.Msg
	add := func(m events.Message, damage string, change func(h nats.Header)) {
		m.Group = fmt.Sprintf("x%d-%s", round, damage)
		out := nats.NewMsg("codea1.r." + string(m.Type) + "." + m.Group)
		m.Headers("ce-", out.Header.Set)
		out.Data = m.Data
		if change != nil {
			change(out.Header)
		}
		all = append(all, out)
	}
	for _, m := range of {
		for damage, change := range payload {
			changed := m
			change(&changed)
			add(changed, damage, nil)
		}
		for damage, change := range header {
			add(m, damage, change)
		}
	}
	// Events that can be decoded and are out of turn.
	for i, p := range []events.Payload{
		mustPayload[*events.PolicyUpdated](t, of, func(p *events.PolicyUpdated) { p.Version, p.Step = 50+round, 50+round }),
		mustPayload[*events.RunStarted](t, of, func(p *events.RunStarted) { p.Attempt = 50 }),
		mustPayload[*events.RunFinished](t, of, func(p *events.RunFinished) { p.Attempt = 50 }),
	} {
		all = append(all, toNATS(t, events.New("r", fmt.Sprintf("x%d-turn%d", round, i), "x", time.Now(), p)))
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// toNATS returns the message of an event of run r.
func toNATS(t *testing.T, e *events.Event) *nats.Msg {
	t.Helper()
	m, err := events.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	out := nats.NewMsg("codea1.r." + string(m.Type) + "." + m.Group)
	m.Headers("ce-", out.Header.Set)
	out.Data = m.Data
	return out
}

// early returns messages that are no events on the subjects of later events of run
// r: those of the groups and versions of each step, of the evaluations and of the
// end.
func early(t *testing.T, of map[events.Type]events.Message, steps int) []*nats.Msg {
	t.Helper()
	groups := []string{"end-0001", "start-0002", "end-0002"}
	for step := 1; step <= steps; step++ {
		groups = append(groups, fmt.Sprintf("code-v%06d", step), fmt.Sprintf("test-v%06d", step))
		for slot := range 3 {
			groups = append(groups, fmt.Sprintf("s%06d-q%04d", step, slot))
		}
	}
	for problem := range 4 {
		groups = append(groups, fmt.Sprintf("e-after-%04d", problem), fmt.Sprintf("e-step-%d-%04d", steps, problem))
	}
	bytes := func(m *events.Message) { m.Encoding, m.Data = events.EncodingNone, []byte{0xc1} }
	damages := []func(m *events.Message){
		bytes,
		func(m *events.Message) { m.SchemaVersion = 999 },
		func(m *events.Message) { m.ID = strings.Repeat("ab", 16) },
		func(m *events.Message) { m.Time = time.Date(1, 2, 3, 4, 5, 6, 7, time.UTC) },
		func(m *events.Message) { m.Encoding = "br" },
	}
	var all []*nats.Msg
	// Versions in turn, with checkpoints that no worker may load.
	for step := 1; step <= steps; step++ {
		for role, uri := range map[events.Role]string{events.RoleCode: "file:///tmp/model", events.RoleTest: "s3://bucket/checkpoints/test/v000001"} {
			p := mustPayload[*events.PolicyUpdated](t, of, func(p *events.PolicyUpdated) {
				p.Role, p.Version, p.Step, p.Checkpoint.URI = role, step, step, uri
			})
			all = append(all, toNATS(t, events.New("r", fmt.Sprintf("%s-v%06d", role, step), "x", time.Now(), p)))
		}
	}
	for typ, m := range of {
		for _, group := range groups {
			m := m
			m.Group = group
			m.ID = events.New("r", group, "x", m.Time, events.NewPayload(typ)).ID // that of a root event
			damages[rand.IntN(len(damages))](&m)
			out := nats.NewMsg("codea1.r." + string(m.Type) + "." + m.Group)
			m.Headers("ce-", out.Header.Set)
			out.Data = m.Data
			all = append(all, out)
		}
	}
	return all
}

func mustPayload[P events.Payload](t *testing.T, of map[events.Type]events.Message, change func(P)) P {
	t.Helper()
	var p P
	m := of[p.EventType()]
	decoded, err := m.Payload()
	if err != nil {
		t.Fatal(err)
	}
	change(decoded.(P))
	return decoded.(P)
}

// asPipeline connects to the server of a training with the login of its stages.
func (p *child) asPipeline(t *testing.T, run string) *nats.Conn {
	t.Helper()
	address, _ := p.address(t)
	password, err := os.ReadFile(natsbus.PasswordFile(rundir.NATS(run), natsbus.PipelineUser))
	if err != nil {
		t.Fatal(err)
	}
	host := address[strings.LastIndexByte(address, '@')+1:]
	conn, err := nats.Connect("nats://"+host, nats.UserInfo(natsbus.PipelineUser, strings.TrimSpace(string(password))))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// publish stores messages on the run's stream, which it waits for. It returns the
// number of those with a free subject.
func publish(t *testing.T, conn *nats.Conn, messages []*nats.Msg) (stored int) {
	t.Helper()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the run begins", func() bool {
		_, err := js.Stream(t.Context(), "codea1-r")
		return err == nil
	})
	// All at once: the training goes on meanwhile.
	var sent []jetstream.PubAckFuture
	for _, m := range messages {
		ack, err := js.PublishMsgAsync(m)
		if err != nil {
			t.Fatalf("%s: %v", m.Subject, err)
		}
		sent = append(sent, ack)
	}
	limit := time.After(patience)
	for _, ack := range sent {
		select {
		case <-ack.Ok():
			stored++
		case err := <-ack.Err():
			if !strings.Contains(err.Error(), "maximum messages per subject") { // an event was faster
				t.Fatalf("%s: %v", ack.Msg().Subject, err)
			}
		case <-limit:
			t.Fatalf("%s: no answer after %v", ack.Msg().Subject, patience)
		}
	}
	return stored
}

// firstStep waits until the stream has the first versions of both roles. A
// subscription would also get a version that the stream does not take. It skips the
// rest of the test if the training ends before this process, which a busy machine may
// delay, has read them.
func firstStep(t *testing.T, p *child, conn *nats.Conn) {
	t.Helper()
	trained := make(chan error, 1)
	go func() { trained <- readFirstStep(t.Context(), conn) }() // Next does not end with the server
	select {
	case err := <-trained:
		if err != nil {
			t.Fatalf("step 1 is not trained: %v", err)
		}
	case <-p.ended:
		t.Skip("the training ended before its first step was read")
	case <-time.After(patience):
		t.Fatalf("no first step after %v", patience)
	}
}

// readFirstStep reads the stream up to the first versions of both roles.
func readFirstStep(ctx context.Context, conn *nats.Conn) error {
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	consumer, err := js.OrderedConsumer(ctx, "codea1-r", jetstream.OrderedConsumerConfig{})
	if err != nil {
		return err
	}
	for roles := make(map[events.Role]bool); len(roles) < 2; {
		msg, err := consumer.Next(jetstream.FetchContext(ctx))
		if err != nil {
			return err
		}
		m, err := events.ParseMessage("ce-", msg.Headers().Get, msg.Data())
		if err != nil || m.Type != events.TypePolicyUpdated {
			continue
		}
		if e, err := m.Admit(); err == nil && e.Payload.(*events.PolicyUpdated).Version == 1 {
			roles[e.Payload.(*events.PolicyUpdated).Role] = true
		}
	}
	return nil
}

// quarantineOf returns the list of the messages that are no events.
func quarantineOf(t *testing.T, dir, run string) (list string, n int) {
	t.Helper()
	list = must(t, dir, "replay", "quarantine", run, "--json")
	for line := range strings.Lines(list) {
		var q eventlog.Quarantined
		if err := json.Unmarshal([]byte(line), &q); err != nil || q.Reason == "" || q.Position == "" {
			t.Errorf("%v: %s", err, line)
		}
		n++
	}
	return list, n
}

// garbageTrain trains while a client with the login of the stages publishes
// messages that are no events. The run must be the wanted one, after a resume and
// in a fork, too, and all tools must read it.
func garbageTrain(t *testing.T, args []string, undisturbed string, want *history, steps int) {
	of := samples(t, undisturbed)
	dir := t.TempDir()
	run := runPath(dir, "r")
	// Made before the training, which does not wait.
	before, after := append(early(t, of, steps), garbage(t, of, 1)...), garbage(t, of, 2)
	p := start(t, dir, args...)
	conn := p.asPipeline(t, run)
	first := publish(t, conn, before)
	firstStep(t, p, conn)
	p.interrupt(t)
	conn.Close()
	if p.command.ProcessState.ExitCode() == 0 {
		t.Skip("the training ended before it was interrupted")
	}

	_, n := quarantineOf(t, dir, "r")
	if n != first {
		t.Errorf("%d messages are quarantined, %d were published", n, first)
	}
	text := must(t, dir, "replay", "quarantine", "r")
	if strings.ContainsAny(text, "\x1b\x07") || strings.Count(text, "\n") != n+1 {
		t.Errorf("the list for people:\n%q", text)
	}
	named := fmt.Sprintf("%d messages on the bus are no events of the run", n)
	for _, command := range []string{"verify", "state"} {
		if out := must(t, dir, "replay", command, "r"); !strings.Contains(out, named) {
			t.Errorf("%s: %s", command, out)
		}
	}
	p = start(t, dir, "train", "--resume", "r")
	conn = p.asPipeline(t, run)
	second := publish(t, conn, after)
	flood := make(chan struct{})
	go func() {
		defer close(flood)
		for round := 3; thorough(); round++ {
			for _, m := range garbage(t, of, round%100) { // its subjects are taken after 100 rounds
				if conn.PublishMsg(m) != nil || conn.Flush() != nil {
					return // the training has ended
				}
			}
		}
	}()
	if code := p.wait(t); code != 0 {
		t.Fatalf("exit code %d after a resume", code)
	}
	conn.Close()
	<-flood
	must(t, dir, "replay", "fork", "r", "f", "--at", "step:1") // an interrupted log may lack the last version
	list, n := quarantineOf(t, dir, "r")
	if n != first+second && !thorough() || n < min(first+second, 1000) {
		t.Errorf("%d messages are quarantined, %d were published", n, first+second)
	}
	fromLog, fromBus := filepath.Join(dir, "log-again"), filepath.Join(dir, "bus-again")
	must(t, dir, "replay", "rebuild", "r", fromLog)
	must(t, dir, "replay", "rebuild", "r", fromBus, "--from-bus", "embedded")
	for _, again := range []string{fromLog, fromBus} {
		// The bus may have later garbage than the log, which ends with the run.
		if got, _ := quarantineOf(t, dir, again); !strings.HasPrefix(got, list) || endOf(t, again) != endOf(t, run) {
			t.Errorf("%s: the log ends with %s, was %s; quarantine:\n%s", again, endOf(t, again), endOf(t, run),
				cmp.Diff(strings.Split(list, "\n"), strings.Split(got, "\n")))
		}
	}
	must(t, dir, "replay", "restore-bus", "r")
	must(t, dir, "train", "--resume", "f")
	for _, name := range []string{"r", "f"} {
		got := read(t, runPath(dir, name), steps)
		if diff := cmp.Diff(want, got, sameRun); diff != "" {
			t.Errorf("%s (-alone +among garbage):\n%s", name, diff)
		}
		must(t, dir, "replay", "verify", name)
	}
}
