package kafkabus_test

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"codea1/events/bustest"
	"codea1/events/kafkabus"

	"github.com/twmb/franz-go/pkg/kerr"
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

// Brokers that can be read and take no notes, as with too few replicas, keep
// consumers waiting; that is said once, and so is its end.
func TestJournalRefused(t *testing.T) {
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
