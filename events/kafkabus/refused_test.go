package kafkabus_test

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"codea1/events"
	"codea1/events/bustest"
	"codea1/events/eventstest"
	"codea1/events/kafkabus"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const journalTopic = "codea1.journal.r1"

// refuseProduce has the broker answer with an error where records for a topic
// come that refused names.
func (c *cluster) refuseProduce(code *kerr.Error, refused func(topic string) bool) {
	c.fake.ControlKey(int16(kmsg.Produce), func(request kmsg.Request) (kmsg.Response, error, bool) {
		c.fake.KeepControl()
		asked := request.(*kmsg.ProduceRequest)
		if !refused(asked.Topics[0].Topic) { // a client asks for one at a time
			return nil, nil, false
		}
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic = asked.Topics[0].Topic
		for _, p := range asked.Topics[0].Partitions {
			partition := kmsg.NewProduceResponseTopicPartition()
			partition.Partition, partition.ErrorCode = p.Partition, code.Code
			topic.Partitions = append(topic.Partitions, partition)
		}
		answer := asked.ResponseKind().(*kmsg.ProduceResponse)
		answer.Topics = append(answer.Topics, topic)
		return answer, nil, true
	})
}

// refuseFetch has the broker answer with an error where records are asked for of
// a topic that refused names.
func (c *cluster) refuseFetch(code *kerr.Error, refused func(topic string) bool) {
	c.fake.ControlKey(int16(kmsg.Fetch), func(request kmsg.Request) (kmsg.Response, error, bool) {
		c.fake.KeepControl()
		asked := request.(*kmsg.FetchRequest)
		if !refused(asked.Topics[0].Topic) {
			return nil, nil, false
		}
		topic := kmsg.NewFetchResponseTopic()
		topic.Topic, topic.TopicID = asked.Topics[0].Topic, asked.Topics[0].TopicID
		for _, p := range asked.Topics[0].Partitions {
			partition := kmsg.NewFetchResponseTopicPartition()
			partition.Partition, partition.ErrorCode = p.Partition, code.Code
			topic.Partitions = append(topic.Partitions, partition)
		}
		answer := asked.ResponseKind().(*kmsg.FetchResponse)
		answer.Topics = append(answer.Topics, topic)
		return answer, nil, true
	})
}

// refuseTopics has the broker permit nobody to create a topic.
func (c *cluster) refuseTopics() {
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
}

// Who must not create topics works with those that somebody else has created,
// and is told what is missing.
func TestTopicsRefused(t *testing.T) {
	c := startCluster(t)
	ctx := bounded(t)
	if err := c.connect(t, kafkabus.Config{}).Publish(ctx, posed(1)...); err != nil {
		t.Fatal(err)
	}
	c.refuseTopics()
	bus := c.connect(t, kafkabus.Config{})
	if err := bus.Publish(ctx, posed(2)...); err != nil {
		t.Error(err)
	}
	other := eventstest.Encode(eventstest.Posed("r2", 1, 0))
	err := bus.Publish(ctx, other)
	if err == nil || !strings.Contains(err.Error(), "create topic codea1.journal.r2: ") || !strings.Contains(err.Error(), "create the topic beforehand") {
		t.Errorf("publish to a new run: %v", err)
	}
	empty := startCluster(t)
	empty.refuseTopics()
	_, err = kafkabus.Connect(ctx, kafkabus.Config{Brokers: empty.fake.ListenAddrs()})
	if err == nil || !strings.Contains(err.Error(), "create the topic beforehand") {
		t.Errorf("connect: %v", err)
	}
}

// Topics that somebody has created with fewer replicas keep them, and that is said.
func TestFewerReplicas(t *testing.T) {
	c := startCluster(t)
	c.connect(t, kafkabus.Config{})
	log := bustest.NewLines()
	c.connect(t, kafkabus.Config{Replicas: 3, Logger: slog.New(log)})
	if line := <-log.C; !strings.HasPrefix(line, "WARN kafka: topics that exist keep fewer replicas") {
		t.Errorf("logged %q", line)
	}
}

// What keeps a client from a broker is told, and no password with it.
func TestConnectTellsWhy(t *testing.T) {
	_, _, server := bustest.Certificate(t)
	secured := startCluster(t, kfake.EnableSASL(), kfake.Superuser(kafkabus.MechanismPlain, "u", "secret")).fake.ListenAddrs()
	encrypted := startCluster(t, kfake.TLS(server)).fake.ListenAddrs()
	for name, c := range map[string]struct {
		config kafkabus.Config
		want   string
	}{
		"NoPassword":    {kafkabus.Config{Brokers: secured}, "TLS and a password, or neither"},
		"WrongPassword": {kafkabus.Config{Brokers: secured, Mechanism: kafkabus.MechanismPlain, User: "u", Password: "wrong"}, "SASL Authentication Failed"},
		"NoTLS":         {kafkabus.Config{Brokers: encrypted}, "TLS and a password, or neither"},
		"UnknownCA":     {kafkabus.Config{Brokers: encrypted, TLS: true}, "unknown authority"},
		"NoBroker":      {kafkabus.Config{Brokers: []string{"127.0.0.1:1"}}, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			c.config.ConnectTimeout = 200 * time.Millisecond
			_, err := kafkabus.Connect(t.Context(), c.config)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.config.Brokers[0]) || strings.Contains(err.Error(), "wrong") {
				t.Errorf("%v", err)
			}
		})
	}
}

// Brokers that can be read and take no notes, as with too few replicas, keep
// consumers waiting; that is said once, and so is its end.
func TestJournalRefused(t *testing.T) {
	c, log, bus := startLogged(t)
	ctx := bounded(t)
	if err := bus.Publish(ctx, posed(1)...); err != nil {
		t.Fatal(err)
	}
	consumer, err := bus.Consume(ctx, workerOf("r1"))
	if err != nil {
		t.Fatal(err)
	}
	var refused atomic.Int64
	var over atomic.Bool
	c.refuseProduce(kerr.NotEnoughReplicas, func(topic string) bool {
		if topic != journalTopic || over.Load() {
			return false
		}
		refused.Add(1)
		return true
	})
	fetched := make(chan error)
	go func() {
		_, err := consumer.Fetch(ctx, 1, 0)
		fetched <- err
	}()
	if line := <-log.C; line != "WARN kafka: the brokers do not write the journal, trying again" {
		t.Errorf("logged %q", line)
	}
	for refused.Load() < 3 {
		if err := ctx.Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(often)
	}
	over.Store(true)
	if err := <-fetched; err != nil {
		t.Error(err)
	}
	if line := <-log.C; line != "INFO kafka: journal written again" {
		t.Errorf("logged %q", line)
	}
}

// Who may read the journal and not the payloads waits, and is told why.
func TestPayloadsRefused(t *testing.T) {
	c, log, bus := startLogged(t)
	ctx := bounded(t)
	if err := bus.Publish(ctx, posed(1)...); err != nil {
		t.Fatal(err)
	}
	var over atomic.Bool
	c.refuseFetch(kerr.TopicAuthorizationFailed, func(topic string) bool { return topic == posedTopic && !over.Load() })
	reader, err := bus.Read(ctx, events.ReadConfig{Run: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	given := make(chan error)
	go func() {
		_, _, err := reader.Next(ctx)
		given <- err
	}()
	if line := <-log.C; line != "WARN kafka: the brokers do not give a payload, trying again" {
		t.Errorf("logged %q", line)
	}
	over.Store(true)
	if err := <-given; err != nil {
		t.Error(err)
	}
}
