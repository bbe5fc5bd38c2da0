package kafkabus_test

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"codea1/events"
	"codea1/events/bustest"
	"codea1/events/eventstest"
	"codea1/events/kafkabus"
)

const controlTopic = "codea1.control.r1"

// refuseProduce makes the broker refuse records for topics that refused
// selects.
func (c *cluster) refuseProduce(code *kerr.Error, refused func(topic string) bool) {
	c.fake.ControlKey(int16(kmsg.Produce), func(request kmsg.Request) (kmsg.Response, error, bool) {
		c.fake.KeepControl()
		asked := request.(*kmsg.ProduceRequest)
		if !refused(asked.Topics[0].Topic) { // a client asks for one topic at a time
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

// refuseFetch makes the broker refuse to return records of topics that refused
// selects.
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

// refuseTopics makes the broker refuse to create topics.
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

// A client that must not create topics works with existing ones, and its errors
// name the missing ones.
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
	if err == nil || !strings.Contains(err.Error(), "create topic codea1.control.r2: ") || !strings.Contains(err.Error(), "create the topic before") {
		t.Errorf("publish to a new run: %v", err)
	}
	empty := startCluster(t)
	empty.refuseTopics()
	_, err = kafkabus.Connect(ctx, kafkabus.Config{Brokers: empty.fake.ListenAddrs()})
	if err == nil || !strings.Contains(err.Error(), "create the topic before") {
		t.Errorf("connect: %v", err)
	}
}

// A warning says that existing topics have fewer replicas than wanted.
func TestFewerReplicas(t *testing.T) {
	c := startCluster(t)
	c.connect(t, kafkabus.Config{})
	log := bustest.NewLines()
	c.connect(t, kafkabus.Config{Replicas: 3, Logger: slog.New(log)})
	if line := <-log.C; !strings.HasPrefix(line, "WARN kafka: existing topics have fewer replicas") {
		t.Errorf("logged %q", line)
	}
}

// The error names the reason and the broker, and no password.
func TestConnectTellsWhy(t *testing.T) {
	t.Parallel()
	_, _, server := bustest.Certificate(t)
	secured := startCluster(t, kfake.EnableSASL(), kfake.Superuser(kafkabus.MechanismPlain, "u", "secret")).fake.ListenAddrs()
	encrypted := startCluster(t, kfake.TLS(server)).fake.ListenAddrs()
	for name, c := range map[string]struct {
		config kafkabus.Config
		want   string
	}{
		"NoPassword":    {kafkabus.Config{Brokers: secured}, "the same TLS and password settings"},
		"WrongPassword": {kafkabus.Config{Brokers: secured, Mechanism: kafkabus.MechanismPlain, User: "u", Password: "wrong"}, "SASL Authentication Failed"},
		"NoTLS":         {kafkabus.Config{Brokers: encrypted}, "the same TLS and password settings"},
		"UnknownCA":     {kafkabus.Config{Brokers: encrypted, TLS: true}, "unknown authority"},
		"NoBroker":      {kafkabus.Config{Brokers: []string{"127.0.0.1:1"}}, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			c.config.ConnectTimeout = 200 * time.Millisecond
			// Waiting for the brokers does not help against a refusal.
			c.config.Wait = name == "WrongPassword" || name == "UnknownCA"
			_, err := kafkabus.Connect(bounded(t), c.config)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.config.Brokers[0]) || strings.Contains(err.Error(), "wrong") {
				t.Errorf("%v", err)
			}
		})
	}
}

// If the brokers refuse writes to the control topic, consumers wait. The begin
// and the end are logged once.
func TestControlTopicRefused(t *testing.T) {
	t.Parallel()
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
		if topic != controlTopic || over.Load() {
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
	if line := <-log.C; line != lostLine {
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
	if line := <-log.C; line != backLine {
		t.Errorf("logged %q", line)
	}
}

// A client that may read the control topic but not the payloads waits, and logs
// the reason.
func TestPayloadsRefused(t *testing.T) {
	t.Parallel()
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
	if line := <-log.C; line != "WARN kafka: the brokers refuse to return a payload, trying again" {
		t.Errorf("logged %q", line)
	}
	over.Store(true)
	if err := <-given; err != nil {
		t.Error(err)
	}
}
