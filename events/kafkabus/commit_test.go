package kafkabus_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"codea1/events"
	"codea1/events/bustest"
	"codea1/events/kafkabus"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const posedTopic = "codea1.problem.posed"

// often is the commit interval of tests.
const often = 20 * time.Millisecond

// TestCommits looks at the consumer groups of sets as other tools do.
func TestCommits(t *testing.T) { testCommits(t, startCluster(t).fake.ListenAddrs()[0]) }

func TestCommitsBroker(t *testing.T) {
	address := os.Getenv("CODEA1_KAFKA")
	if address == "" {
		t.Skip("CODEA1_KAFKA names no broker")
	}
	testCommits(t, address)
}

func testCommits(t *testing.T, address string) {
	for name, test := range map[string]func(*testing.T, *tool){
		"OutOfOrder": outOfOrder, "Crash": crash, "DeadLetter": deadLetter, "Repair": repair, "DeadTopic": deadTopic,
	} {
		t.Run(name, func(t *testing.T) { test(t, newTool(t, address)) })
	}
}

// tool is another client of the brokers, which looks at one run.
type tool struct {
	t       *testing.T
	address string
	client  *kafka.Client
	run     string
}

func newTool(t *testing.T, address string) *tool {
	transport := &kafka.Transport{MetadataTTL: often} // topics come and go
	t.Cleanup(transport.CloseIdleConnections)
	return &tool{
		t: t, address: address, run: "m" + strconv.FormatInt(time.Now().UnixNano(), 36),
		client: &kafka.Client{Addr: kafka.TCP(address), Transport: transport},
	}
}

func (u *tool) connect() *kafkabus.Bus {
	u.t.Helper()
	return connect(u.t, kafkabus.Config{Brokers: []string{u.address}, CommitInterval: often})
}

func workerOf(run string) events.ConsumeConfig {
	return events.ConsumeConfig{
		Run: run, Name: "worker", Types: []events.Type{events.TypeProblemPosed}, AckWait: time.Minute, MaxInFlight: 100,
	}
}

// posed returns n events of a run.
func (u *tool) posed(run string, n int) []events.Message {
	list := make([]events.Message, n)
	for i := range list {
		list[i] = bustest.Encode(bustest.Posed(run, 1, i))
	}
	return list
}

// ends returns the ends of the partitions of the problems' topic.
func (u *tool) ends() map[int]int64 {
	u.t.Helper()
	meta, err := u.client.Metadata(u.t.Context(), &kafka.MetadataRequest{Topics: []string{posedTopic}})
	if err != nil {
		u.t.Fatal(err)
	}
	var asked []kafka.OffsetRequest
	for _, p := range meta.Topics[0].Partitions {
		asked = append(asked, kafka.LastOffsetOf(p.ID))
	}
	answer, err := u.client.ListOffsets(u.t.Context(), &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{posedTopic: asked}})
	if err != nil {
		u.t.Fatal(err)
	}
	ends := make(map[int]int64)
	for _, p := range answer.Topics[posedTopic] {
		if p.Error != nil {
			u.t.Fatal(p.Error)
		}
		ends[p.Partition] = p.LastOffset
	}
	return ends
}

// payload is where the payload of an event lies.
type payload struct {
	id        string
	partition int
	offset    int64
}

// payloads returns where those of a run lie, by partition in their order.
func (u *tool) payloads(run string) map[int][]payload {
	u.t.Helper()
	found := make(map[int][]payload)
	for partition, end := range u.ends() {
		for offset := int64(0); offset < end; {
			answer, err := u.client.Fetch(u.t.Context(), &kafka.FetchRequest{
				Topic: posedTopic, Partition: partition, Offset: offset, MinBytes: 1, MaxBytes: 16 << 20, MaxWait: time.Second,
			})
			if err == nil {
				err = answer.Error
			}
			if err != nil {
				u.t.Fatal(err)
			}
			for {
				r, err := answer.Records.ReadRecord()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					u.t.Fatal(err)
				}
				if r.Offset >= offset && header(r, "ce_run") == run {
					found[partition] = append(found[partition], payload{header(r, "ce_id"), partition, r.Offset})
				}
				offset = max(offset, r.Offset+1)
			}
		}
	}
	return found
}

func header(r *kafka.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// commits returns what the group of the set has, -1 for nothing.
func (u *tool) commits() map[int]int64 {
	u.t.Helper()
	answer, err := u.client.OffsetFetch(u.t.Context(), &kafka.OffsetFetchRequest{
		GroupID: "codea1." + u.run + ".worker", Topics: map[string][]int{posedTopic: slices.Collect(maps.Keys(u.ends()))},
	})
	if err != nil {
		u.t.Fatal(err)
	}
	found := make(map[int]int64)
	for _, p := range answer.Topics[posedTopic] {
		found[p.Partition] = p.CommittedOffset
	}
	return found
}

// await waits until the group has the offsets wanted.
func (u *tool) await(what string, want func() map[int]int64) {
	u.t.Helper()
	ctx := bounded(u.t)
	for {
		diff := cmp.Diff(want(), u.commits())
		if diff == "" {
			return
		}
		select {
		case <-time.After(often):
		case <-ctx.Done():
			u.t.Fatalf("%s (-want +committed):\n%s", what, diff)
		}
	}
}

// firsts returns a mark for each partition: the offset of the first of its
// payloads that is chosen, and otherwise its end.
func (u *tool) firsts(chosen func(payload) bool) func() map[int]int64 {
	lie := u.payloads(u.run)
	return func() map[int]int64 {
		marks := u.ends()
		for partition, list := range lie {
			if i := slices.IndexFunc(list, chosen); i >= 0 {
				marks[partition] = list[i].offset
			}
		}
		return marks
	}
}

func none(payload) bool { return false }

// seconds returns the second event of each partition.
func (u *tool) seconds() func(id string) bool {
	chosen := make(map[string]bool)
	for _, list := range u.payloads(u.run) {
		if len(list) > 1 {
			chosen[list[1].id] = true
		}
	}
	if len(chosen) == 0 {
		u.t.Fatal("no partition has two events")
	}
	return func(id string) bool { return chosen[id] }
}

// fetch takes n messages.
func fetch(ctx context.Context, t *testing.T, c events.Consumer, n int) []events.Delivery {
	t.Helper()
	var list []events.Delivery
	for len(list) < n {
		got, err := c.Fetch(ctx, n-len(list), 0)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, got...)
	}
	return list
}

// Messages that are done behind one that is not move nothing; one that is given
// back is not done. Payloads of other runs are passed over, and at the end
// there is no lag, whoever wrote last.
func outOfOrder(t *testing.T, u *tool) {
	ctx := bounded(t)
	bus := u.connect()
	mine, others := u.posed(u.run, 24), u.posed(u.run+"x", 24)
	for i := range mine {
		if err := bus.Publish(ctx, others[i], mine[i]); err != nil {
			t.Fatal(err)
		}
	}
	consumer, err := bus.Consume(ctx, workerOf(u.run))
	if err != nil {
		t.Fatal(err)
	}
	u.await("all wait", u.firsts(func(payload) bool { return true }))
	open := u.seconds()
	var left []events.Delivery
	for _, d := range fetch(ctx, t, consumer, len(mine)) {
		if open(d.Message().ID) {
			left = append(left, d)
		} else if err := d.Ack(ctx); err != nil {
			t.Fatal(err)
		}
	}
	behind := u.firsts(func(p payload) bool { return open(p.id) })
	u.await("second ones are held", behind)
	for _, d := range left {
		if err := d.Retry(ctx, 0); err != nil {
			t.Fatal(err)
		}
	}
	left = fetch(ctx, t, consumer, len(left))
	u.await("second ones are tried again", behind)
	for _, d := range left {
		if err := d.Ack(ctx); err != nil {
			t.Fatal(err)
		}
	}
	u.await("all are done", u.firsts(none))
	if err := bus.Publish(ctx, u.posed(u.run+"y", 24)...); err != nil {
		t.Fatal(err)
	}
	u.await("another run goes on", u.firsts(none))
	more := bustest.Encode(bustest.Posed(u.run, 2, 0))
	if err := bus.Publish(ctx, more); err != nil {
		t.Fatal(err)
	}
	u.await("one more", u.firsts(func(p payload) bool { return p.id == more.ID }))
	if err := fetch(ctx, t, consumer, 1)[0].Ack(ctx); err != nil {
		t.Fatal(err)
	}
	if err := bus.Close(); err != nil {
		t.Fatal(err)
	}
	u.await("closed", u.firsts(none)) // nobody is left who would commit later
}

// memberEnv has a process of this test be a member: the address and the run,
// then the events that it does not finish.
const memberEnv = "CODEA1_KAFKABUS_MEMBER"

// beMember takes and answers what there is, says so and waits to be killed.
func beMember(what string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	args := strings.Fields(what)
	bus, err := kafkabus.Connect(ctx, kafkabus.Config{Brokers: args[:1], CommitInterval: often})
	if err != nil {
		return err
	}
	config := workerOf(args[1])
	config.AckWait = time.Second
	consumer, err := bus.Consume(ctx, config)
	if err != nil {
		return err
	}
	lag, err := bus.Lag(ctx, config.Run, config.Name)
	if err != nil {
		return err
	}
	for range lag.Pending {
		got, err := consumer.Fetch(ctx, 1, 0)
		if err != nil {
			return err
		}
		if !slices.Contains(args[2:], got[0].Message().ID) {
			if err := got[0].Ack(ctx); err != nil {
				return err
			}
		}
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}

// What a member held when it died waits, until another one has finished it.
func crash(t *testing.T, u *tool) {
	ctx := bounded(t)
	bus := u.connect()
	list := u.posed(u.run, 24)
	if err := bus.Publish(ctx, list...); err != nil {
		t.Fatal(err)
	}
	open := u.seconds()
	what := []string{u.address, u.run}
	for _, m := range list {
		if open(m.ID) {
			what = append(what, m.ID)
		}
	}
	member := exec.CommandContext(ctx, os.Args[0])
	member.Env = append(os.Environ(), memberEnv+"="+strings.Join(what, " "))
	member.Stderr = os.Stderr
	in, err := member.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := member.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := member.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the member says %q, %v", line, err)
	}
	behind := u.firsts(func(p payload) bool { return open(p.id) })
	u.await("the member holds the second ones", behind)
	if err := member.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = member.Wait()
	config := workerOf(u.run)
	config.AckWait = time.Second
	consumer, err := bus.Consume(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	u.await("the member is dead", behind)
	for _, d := range fetch(ctx, t, consumer, len(what)-2) {
		if d.Attempt() != 2 {
			t.Errorf("attempt %d of %s", d.Attempt(), d.Message().ID)
		}
		if err := d.Ack(ctx); err != nil {
			t.Fatal(err)
		}
	}
	u.await("another one has finished", u.firsts(none))
}

// A dead letter is done with; sent back, it waits, even when no member is left
// to say so.
func deadLetter(t *testing.T, u *tool) {
	ctx := bounded(t)
	bus := u.connect()
	if err := bus.Publish(ctx, u.posed(u.run, 12)...); err != nil {
		t.Fatal(err)
	}
	consumer, err := bus.Consume(ctx, workerOf(u.run))
	if err != nil {
		t.Fatal(err)
	}
	var dead events.Message
	for i, d := range fetch(ctx, t, consumer, 12) {
		if i == 0 {
			dead = d.Message()
			err = d.DeadLetter(ctx, "no")
		} else {
			err = d.Ack(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	u.await("given up", u.firsts(none))
	if err := bus.Close(); err != nil {
		t.Fatal(err)
	}
	again := u.connect()
	if err := again.Redeliver(ctx, u.run, events.DeadLetterID("worker", dead.ID, 1)); err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	u.await("sent back", u.firsts(func(p payload) bool { return p.id == dead.ID }))
	bus = u.connect()
	if consumer, err = bus.Consume(ctx, workerOf(u.run)); err != nil {
		t.Fatal(err)
	}
	if err := fetch(ctx, t, consumer, 1)[0].Ack(ctx); err != nil {
		t.Fatal(err)
	}
	u.await("done", u.firsts(none))
}

// What a late member commits, or somebody with a tool, does not stay.
func repair(t *testing.T, u *tool) {
	ctx := bounded(t)
	bus := u.connect()
	if err := bus.Publish(ctx, u.posed(u.run, 12)...); err != nil {
		t.Fatal(err)
	}
	consumer, err := bus.Consume(ctx, workerOf(u.run))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range fetch(ctx, t, consumer, 12) {
		if err := d.Ack(ctx); err != nil {
			t.Fatal(err)
		}
	}
	u.await("done", u.firsts(none))
	for _, metadata := range []string{"3", ""} {
		var wrong []kafka.OffsetCommit
		for partition := range u.ends() {
			wrong = append(wrong, kafka.OffsetCommit{Partition: partition, Metadata: metadata})
		}
		answer, err := u.client.OffsetCommit(ctx, &kafka.OffsetCommitRequest{
			GroupID: "codea1." + u.run + ".worker", GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{posedTopic: wrong},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range answer.Topics[posedTopic] {
			if p.Error != nil {
				t.Fatal(p.Error)
			}
		}
		u.await("set back", u.firsts(none))
	}
}

// A topic has a copy of each message that was given up on, as it travelled, and
// says who gave up and why.
func deadTopic(t *testing.T, u *tool) {
	ctx := bounded(t)
	bus := u.connect()
	if err := bus.Publish(ctx, u.posed(u.run, 2)...); err != nil {
		t.Fatal(err)
	}
	consumer, err := bus.Consume(ctx, workerOf(u.run))
	if err != nil {
		t.Fatal(err)
	}
	var want []events.Message
	for _, d := range fetch(ctx, t, consumer, 2) {
		want = append(want, d.Message())
		if err := d.DeadLetter(ctx, "no "+d.Message().Group); err != nil {
			t.Fatal(err)
		}
		// Once the note is known, no copy follows.
		if _, err := bus.Lag(ctx, u.run, "worker"); err != nil {
			t.Fatal(err)
		}
		if err := d.DeadLetter(ctx, "once more"); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := u.client.Fetch(ctx, &kafka.FetchRequest{
		Topic: "codea1.dead." + u.run, Offset: 0, MinBytes: 1, MaxBytes: 16 << 20, MaxWait: time.Second,
	})
	if err == nil {
		err = answer.Error
	}
	if err != nil {
		t.Fatal(err)
	}
	copies := make(map[string]*kafka.Record)
	for r, err := answer.Records.ReadRecord(); !errors.Is(err, io.EOF); r, err = answer.Records.ReadRecord() {
		if err != nil {
			t.Fatal(err)
		}
		if copies[header(r, "ce_id")] != nil {
			t.Errorf("a second copy of %s", header(r, "ce_id"))
		}
		copies[header(r, "ce_id")] = r
		value, err := kafka.ReadAll(r.Value)
		if err != nil {
			t.Fatal(err)
		}
		got, err := events.ParseMessage("ce_", func(name string) string { return header(r, name) }, value)
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(want, func(m events.Message) bool { return m.ID == got.ID }); i < 0 {
			t.Errorf("a copy of %s", got.ID)
		} else if d := cmp.Diff(want[i], got); d != "" {
			t.Errorf("(-given up +copied):\n%s", d)
		}
	}
	for _, m := range want {
		r := copies[m.ID]
		if r == nil {
			t.Fatalf("no copy of %s", m.ID)
		}
		key, err := kafka.ReadAll(r.Key)
		if err != nil || string(key) != m.Group {
			t.Errorf("key %q, %v, want %q", key, err, m.Group)
		}
		letter, _, err := bus.DeadLetter(ctx, u.run, header(r, "codea1_deadletter"))
		if err != nil {
			t.Fatal(err)
		}
		said := []string{header(r, "codea1_set"), header(r, "codea1_attempts"), header(r, "codea1_error")}
		if d := cmp.Diff([]string{letter.Name, strconv.Itoa(letter.Attempts), letter.Reason}, said); d != "" {
			t.Errorf("(-letter +copy):\n%s", d)
		}
	}
}

// A topic of dead letters that must not be created keeps no message from being
// given up.
func TestDeadTopicRefused(t *testing.T) {
	c := startCluster(t)
	log := bustest.NewLines()
	bus := c.connect(t, kafkabus.Config{Logger: slog.New(log)})
	ctx := bounded(t)
	if err := bus.Publish(ctx, posed(1)...); err != nil {
		t.Fatal(err)
	}
	consumer, err := bus.Consume(ctx, workerOf("r1"))
	if err != nil {
		t.Fatal(err)
	}
	d := fetch(ctx, t, consumer, 1)[0]
	c.fake.ControlKey(int16(kmsg.CreateTopics), func(request kmsg.Request) (kmsg.Response, error, bool) {
		c.fake.KeepControl()
		answer := request.ResponseKind().(*kmsg.CreateTopicsResponse)
		for _, asked := range request.(*kmsg.CreateTopicsRequest).Topics {
			topic := kmsg.NewCreateTopicsResponseTopic()
			topic.Topic, topic.ErrorCode = asked.Topic, kerr.TopicAuthorizationFailed.Code
			answer.Topics = append(answer.Topics, topic)
		}
		return answer, nil, true
	})
	if err := d.DeadLetter(ctx, "no"); err != nil {
		t.Fatal(err)
	}
	if line := <-log.C; line != "ERROR kafka: a dead letter has no copy for taps" {
		t.Errorf("logged %q", line)
	}
	if list, err := bus.DeadLetters(ctx, "r1"); err != nil || len(list) != 1 {
		t.Errorf("dead letters: %v, %v", list, err)
	}
}

// A group that must not be written is said once, and holds nobody up.
func TestCommitRefused(t *testing.T) {
	c := startCluster(t)
	refuse := make(chan struct{})
	c.fake.ControlKey(int16(kmsg.OffsetCommit), func(request kmsg.Request) (kmsg.Response, error, bool) {
		select {
		case <-refuse:
			return nil, nil, false
		default:
		}
		c.fake.KeepControl()
		answer := request.ResponseKind().(*kmsg.OffsetCommitResponse)
		for _, asked := range request.(*kmsg.OffsetCommitRequest).Topics {
			topic := kmsg.NewOffsetCommitResponseTopic()
			topic.Topic = asked.Topic
			for _, p := range asked.Partitions {
				partition := kmsg.NewOffsetCommitResponseTopicPartition()
				partition.Partition, partition.ErrorCode = p.Partition, kerr.GroupAuthorizationFailed.Code
				topic.Partitions = append(topic.Partitions, partition)
			}
			answer.Topics = append(answer.Topics, topic)
		}
		return answer, nil, true
	})
	log := bustest.NewLines()
	bus := c.connect(t, kafkabus.Config{Logger: slog.New(log), CommitInterval: often})
	u := newTool(t, c.fake.ListenAddrs()[0])
	ctx := bounded(t)
	if err := bus.Publish(ctx, u.posed(u.run, 12)...); err != nil {
		t.Fatal(err)
	}
	consumer, err := bus.Consume(ctx, workerOf(u.run))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range fetch(ctx, t, consumer, 12) {
		if err := d.Ack(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if line := <-log.C; line != "WARN kafka: cannot commit to the groups that tools read, trying again" {
		t.Errorf("logged %q", line)
	}
	close(refuse)
	u.await("allowed", u.firsts(none))
	if line := <-log.C; line != "INFO kafka: commits to the groups that tools read again" {
		t.Errorf("logged %q", line)
	}
}
