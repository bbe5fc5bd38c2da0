package kafkabus_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"codea1/events"
	"codea1/events/bustest"
	"codea1/events/eventstest"
	"codea1/events/kafkabus"
)

// TestCommits reads the consumer groups of worker sets as other tools do.
func TestCommits(t *testing.T) {
	t.Parallel()
	testCommits(t, startCluster(t).fake.ListenAddrs()[0])
}

func TestCommitsBroker(t *testing.T) {
	address := os.Getenv("CODEA1_KAFKA")
	if address == "" {
		t.Skip("CODEA1_KAFKA names no broker")
	}
	testCommits(t, address)
}

func testCommits(t *testing.T, address string) {
	for name, test := range map[string]func(*testing.T, *tool){
		"OutOfOrder": outOfOrder, "Crash": crash, "DeadLetter": deadLetter, "Repair": repair, "DeadTopic": deadTopic, "RetryTopic": retryTopic,
	} {
		t.Run(name, func(t *testing.T) { test(t, newTool(t, address)) })
	}
}

// Events that are finished behind an unfinished event do not move the offset,
// nor does a retry. Payloads of other runs are skipped. At the end there is no
// lag.
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
	more := eventstest.Encode(eventstest.Posed(u.run, 2, 0))
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
	u.await("closed", u.firsts(none)) // no process would commit later
}

// memberEnv makes a process of this test a member: the address, the run, and
// the events that it does not finish.
const memberEnv = "CODEA1_KAFKABUS_MEMBER"

// beMember answers the events that there are, reports it and waits to be
// killed.
func beMember(what string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	args := strings.Fields(what)
	bus, err := kafkabus.Connect(ctx, kafkabus.Config{Brokers: args[:1], CommitInterval: often})
	if err != nil {
		return err
	}
	config := workerOf(args[1]) // its AckWait is longer than the test
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
	for want := (events.Lag{InFlight: int64(len(args) - 2)}); lag != want; { // until its answers are stored
		if lag, err = bus.Lag(ctx, config.Run, config.Name); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}

// Events that a killed member held are unfinished until another member finishes
// them.
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
		if d.Number() != 2 {
			t.Errorf("delivery %d of %s", d.Number(), d.Message().ID)
		}
		if err := d.Ack(ctx); err != nil {
			t.Fatal(err)
		}
	}
	u.await("another one has finished", u.firsts(none))
}

// A dead letter is finished. After its redelivery it waits in the retry topic,
// even if the worker set has no member.
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
	topic := "codea1.retry." + u.run + ".worker"
	u.awaitOffset("sent back", topic, 0)
	u.await("sent back", u.firsts(none))
	copies := u.copies(topic)
	if len(copies) != 1 || copies[0].header("codea1_deadletter") != events.DeadLetterID("worker", dead.ID, 1) {
		t.Fatalf("copies %+v", copies)
	}
	if d := cmp.Diff(dead, copies[0].message); d != "" {
		t.Errorf("(-given up +sent back):\n%s", d)
	}
	bus = u.connect()
	if consumer, err = bus.Consume(ctx, workerOf(u.run)); err != nil {
		t.Fatal(err)
	}
	if err := fetch(ctx, t, consumer, 1)[0].Ack(ctx); err != nil {
		t.Fatal(err)
	}
	u.await("done", u.firsts(none))
	u.awaitOffset("done", topic, 1)
}

// A commit of a late member or of a tool is overwritten.
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

// If commits are refused, this is logged once, and nothing waits for them.
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
	if line := <-log.C; line != "WARN kafka: cannot commit offsets for other tools, trying again" {
		t.Errorf("logged %q", line)
	}
	close(refuse)
	u.await("allowed", u.firsts(none))
	if line := <-log.C; line != "INFO kafka: commits offsets for other tools again" {
		t.Errorf("logged %q", line)
	}
}
