package kafkabus_test

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"codea1/events"
	"codea1/events/bustest"
	"codea1/events/kafkabus"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A broker that does not know the topics of a new run for a moment, as real ones
// do, is no outage: nothing is logged.
func TestFirstStartIsQuiet(t *testing.T) {
	c := startCluster(t)
	var refused atomic.Int32
	c.fake.ControlKey(int16(kmsg.Fetch), func(request kmsg.Request) (kmsg.Response, error, bool) {
		c.fake.KeepControl()
		if refused.Add(1) > 3 {
			return nil, nil, false
		}
		asked := request.(*kmsg.FetchRequest)
		answer := asked.ResponseKind().(*kmsg.FetchResponse)
		for _, topic := range asked.Topics {
			t := kmsg.NewFetchResponseTopic()
			t.Topic, t.TopicID = topic.Topic, topic.TopicID
			for _, partition := range topic.Partitions {
				p := kmsg.NewFetchResponseTopicPartition()
				p.Partition, p.ErrorCode = partition.Partition, kerr.UnknownTopicOrPartition.Code
				t.Partitions = append(t.Partitions, p)
			}
			answer.Topics = append(answer.Topics, t)
		}
		return answer, nil, true
	})
	log := bustest.NewLines()
	bus := c.connect(t, kafkabus.Config{Logger: slog.New(log)})
	ctx := bounded(t)
	list := posed(1)
	if err := bus.Publish(ctx, list...); err != nil {
		t.Fatal(err)
	}
	consumer, err := bus.Consume(ctx, events.ConsumeConfig{Run: "r1", Name: "worker", AckWait: time.Minute, MaxInFlight: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := consumer.Fetch(ctx, 1, 0); err != nil {
		t.Fatal(err)
	}
	if refused.Load() <= 3 {
		t.Error("the broker knew the topic at once")
	}
	select {
	case line := <-log.C:
		t.Errorf("logged %q", line)
	default:
	}
}
