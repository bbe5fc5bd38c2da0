package kafkabus_test

import (
	"errors"
	"io"
	"log/slog"
	"slices"
	"strconv"
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
