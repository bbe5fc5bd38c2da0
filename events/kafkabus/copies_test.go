package kafkabus_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"

	"codea1/events"
	"codea1/events/kafkabus"
)

// The dead letter topic has an unchanged copy of each dead letter, with its
// worker set and reason.
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
		// After the change is stored, no copy follows.
		if _, err := bus.Lag(ctx, u.run, "worker"); err != nil {
			t.Fatal(err)
		}
		if err := d.DeadLetter(ctx, "once more"); err != nil {
			t.Fatal(err)
		}
	}
	copies := u.copies("codea1.dead." + u.run)
	if len(copies) != len(want) {
		t.Fatalf("%d copies", len(copies))
	}
	for i, c := range copies {
		if d := cmp.Diff(want[i], c.message); d != "" {
			t.Errorf("(-given up +copied):\n%s", d)
		}
		letter, _, err := bus.DeadLetter(ctx, u.run, c.header("codea1_deadletter"))
		if err != nil {
			t.Fatal(err)
		}
		logged := []string{c.header("codea1_set"), c.header("codea1_deliveries"), c.header("codea1_error")}
		if d := cmp.Diff([]string{letter.Name, strconv.Itoa(letter.Deliveries), letter.Reason}, logged); d != "" {
			t.Errorf("(-letter +copy):\n%s", d)
		}
	}
}

// A retried event waits in the retry topic. The offset of its partition passes
// it, and the offset of the retry topic stays at its one copy.
func retryTopic(t *testing.T, u *tool) {
	ctx := bounded(t)
	bus := u.connect()
	if err := bus.Publish(ctx, u.posed(u.run, 12)...); err != nil {
		t.Fatal(err)
	}
	consumer, err := bus.Consume(ctx, workerOf(u.run))
	if err != nil {
		t.Fatal(err)
	}
	var want []events.Message
	for i, d := range fetch(ctx, t, consumer, 12) {
		if i%4 == 0 {
			want = append(want, d.Message())
			err = d.Retry(ctx, time.Millisecond)
		} else {
			err = d.Ack(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	topic := "codea1.retry." + u.run + ".worker"
	u.await("put off", u.firsts(none))
	u.awaitOffset("all put off wait", topic, 0)
	again := fetch(ctx, t, consumer, len(want))
	for i, d := range again {
		if diff := cmp.Diff(want[i], d.Message()); diff != "" || d.Number() != 2 {
			t.Errorf("delivery %d (-retried +delivered):\n%s", d.Number(), diff)
		}
	}
	if err := again[0].Ack(ctx); err != nil {
		t.Fatal(err)
	}
	u.awaitOffset("the first is done", topic, 1)
	for _, d := range again[1:] {
		if err := d.Retry(ctx, time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	again = fetch(ctx, t, consumer, len(want)-1)
	u.awaitOffset("the others are put off once more", topic, 1)
	for _, d := range again {
		if err := d.Ack(ctx); err != nil {
			t.Fatal(err)
		}
	}
	u.awaitOffset("all are done", topic, int64(len(want)))
	u.await("all are done", u.firsts(none))
	copies := u.copies(topic)
	if len(copies) != len(want) {
		t.Fatalf("%d copies, want %d", len(copies), len(want))
	}
	for i, c := range copies {
		if d := cmp.Diff(want[i], c.message); d != "" {
			t.Errorf("(-put off +copied):\n%s", d)
		}
		if d := cmp.Diff([]string{"worker", "1"}, []string{c.header("codea1_set"), c.header("codea1_deliveries")}); d != "" {
			t.Errorf("(-delivery +copy):\n%s", d)
		}
	}
}

// If the copy or the original is deleted, the other one is delivered.
func TestRetryTopicDeleted(t *testing.T) {
	t.Parallel()
	for _, topic := range []string{posedTopic, "codea1.retry.r1.worker"} {
		c := startCluster(t)
		bus := c.connect(t, kafkabus.Config{CommitInterval: often})
		ctx := bounded(t)
		if err := bus.Publish(ctx, posed(12)...); err != nil {
			t.Fatal(err)
		}
		consumer, err := bus.Consume(ctx, workerOf("r1"))
		if err != nil {
			t.Fatal(err)
		}
		list := fetch(ctx, t, consumer, 12)
		want := list[0].Message()
		if err := list[0].Retry(ctx, 50*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		for _, d := range list[1:] {
			if err := d.Ack(ctx); err != nil {
				t.Fatal(err)
			}
		}
		u := newTool(t, c.fake.ListenAddrs()[0])
		u.run = "r1"
		answer, err := u.client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
		if err == nil {
			err = answer.Errors[topic]
		}
		if err != nil {
			t.Fatal(err)
		}
		d := fetch(ctx, t, consumer, 1)[0]
		if diff := cmp.Diff(want, d.Message()); diff != "" {
			t.Errorf("%s deleted (-published +delivered):\n%s", topic, diff)
		}
		if err := d.Ack(ctx); err != nil {
			t.Fatal(err)
		}
		for {
			lag, err := bus.Lag(ctx, "r1", "worker")
			if err != nil {
				t.Fatal(err)
			}
			if lag == (events.Lag{}) {
				break
			}
		}
		if topic != posedTopic {
			u.await("done", u.firsts(none))
		}
	}
}

// Retries and dead letters work if the topics of copies must not be created.
func TestCopiesRefused(t *testing.T) {
	c, log, bus := startLogged(t)
	ctx := bounded(t)
	if err := bus.Publish(ctx, posed(1)...); err != nil {
		t.Fatal(err)
	}
	consumer, err := bus.Consume(ctx, workerOf("r1"))
	if err != nil {
		t.Fatal(err)
	}
	d := fetch(ctx, t, consumer, 1)[0]
	c.refuseTopics()
	if err := d.Retry(ctx, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	d = fetch(ctx, t, consumer, 1)[0]
	if err := d.DeadLetter(ctx, "no"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if line := <-log.C; line != "ERROR kafka: cannot copy a message for other tools" {
			t.Errorf("logged %q", line)
		}
	}
	if list, err := bus.DeadLetters(ctx, "r1"); err != nil || len(list) != 1 {
		t.Errorf("dead letters: %v, %v", list, err)
	}
}

// If the brokers refuse writes to a topic of copies, answers take no longer
// than their context allows.
func TestCopiesUnwritten(t *testing.T) {
	t.Parallel()
	c, log, bus := startLogged(t)
	ctx := bounded(t)
	if err := bus.Publish(ctx, posed(3)...); err != nil {
		t.Fatal(err)
	}
	consumer, err := bus.Consume(ctx, workerOf("r1"))
	if err != nil {
		t.Fatal(err)
	}
	var tried atomic.Int64 // in the second half
	var counted atomic.Bool
	c.refuseProduce(kerr.NotEnoughReplicas, func(topic string) bool {
		if topic == controlTopic {
			return false
		}
		if counted.Load() {
			tried.Add(1)
		}
		return true
	})
	answer := func(do func(context.Context) error) {
		t.Helper()
		limited, cancel := context.WithTimeout(ctx, 8*time.Second) // AckWait, as in a stage
		defer cancel()
		if err := do(limited); err != nil {
			t.Error(err)
		}
	}
	list := fetch(ctx, t, consumer, 3)
	var both sync.WaitGroup
	both.Go(func() { answer(func(ctx context.Context) error { return list[0].Retry(ctx, time.Millisecond) }) })
	both.Go(func() { answer(func(ctx context.Context) error { return list[1].DeadLetter(ctx, "no") }) })
	both.Wait()
	for range 2 {
		if line := <-log.C; line != "ERROR kafka: cannot copy a message for other tools" {
			t.Errorf("logged %q", line)
		}
	}
	// The answers after it do not wait either.
	counted.Store(true)
	answer(func(ctx context.Context) error { return list[2].Retry(ctx, time.Millisecond) })
	for _, d := range fetch(ctx, t, consumer, 2) {
		answer(func(ctx context.Context) error { return d.DeadLetter(ctx, "no") })
	}
	if list, err := bus.DeadLetters(ctx, "r1"); err != nil || len(list) != 3 {
		t.Errorf("dead letters: %v, %v", list, err)
	}
	if n := tried.Load(); n != 0 {
		t.Errorf("copies were tried %d times more", n)
	}
}
