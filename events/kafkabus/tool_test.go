package kafkabus_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"

	"codea1/events"
	"codea1/events/eventstest"
	"codea1/events/kafkabus"
)

const posedTopic = "codea1.problem.posed"

// often is the commit interval of tests.
const often = 20 * time.Millisecond

// tool is another Kafka client that looks at one run.
type tool struct {
	t       *testing.T
	address string
	client  *kafka.Client
	run     string
}

func newTool(t *testing.T, address string) *tool {
	t.Helper()
	transport := &kafka.Transport{MetadataTTL: often} // topics come and go
	t.Cleanup(transport.CloseIdleConnections)
	u := &tool{
		t: t, address: address, run: "m" + strconv.FormatInt(time.Now().UnixNano(), 36),
		client: &kafka.Client{Addr: kafka.TCP(address), Transport: transport},
	}
	u.know("the brokers", func(*kafka.MetadataResponse) bool { return true })
	return u
}

// know waits until the metadata of this client fulfils a condition.
func (u *tool) know(what string, is func(*kafka.MetadataResponse) bool, topics ...string) {
	u.t.Helper()
	ctx := bounded(u.t)
	for {
		answer, err := u.client.Metadata(ctx, &kafka.MetadataRequest{Topics: topics})
		if err == nil && is(answer) {
			return
		}
		select {
		case <-time.After(often):
		case <-ctx.Done():
			u.t.Fatalf("%s: not known: %v", what, err)
		}
	}
}

func (u *tool) knowTopic(topic string) {
	u.t.Helper()
	u.know(topic, func(m *kafka.MetadataResponse) bool {
		return len(m.Topics) == 1 && m.Topics[0].Error == nil && len(m.Topics[0].Partitions) > 0
	}, topic)
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
		list[i] = eventstest.Encode(eventstest.Posed(run, 1, i))
	}
	return list
}

// ends returns the ends of the partitions of problem.posed.
func (u *tool) ends() map[int]int64 {
	u.t.Helper()
	u.knowTopic(posedTopic)
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

// payload is the location of an event's payload.
type payload struct {
	id        string
	partition int
	offset    int64
}

// payloads returns the payloads of a run by partition, in order.
func (u *tool) payloads(run string) map[int][]payload {
	u.t.Helper()
	found := make(map[int][]payload)
	for partition, end := range u.ends() {
		u.records(posedTopic, partition, end, func(r *kafka.Record) {
			if header(r, "ce_run") == run {
				found[partition] = append(found[partition], payload{header(r, "ce_id"), partition, r.Offset})
			}
		})
	}
	return found
}

// records calls see with the records of a partition before an offset.
func (u *tool) records(topic string, partition int, end int64, see func(*kafka.Record)) {
	u.t.Helper()
	for offset := int64(0); offset < end; {
		answer, err := u.client.Fetch(u.t.Context(), &kafka.FetchRequest{
			Topic: topic, Partition: partition, Offset: offset, MinBytes: 1, MaxBytes: 16 << 20, MaxWait: time.Second,
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
			if r.Offset >= offset {
				see(r)
			}
			offset = max(offset, r.Offset+1)
		}
	}
}

// messageCopy is a copy in a topic of one partition.
type messageCopy struct {
	message events.Message
	header  func(name string) string
}

// copies returns the records of a topic of copies.
func (u *tool) copies(topic string) []messageCopy {
	u.t.Helper()
	u.knowTopic(topic)
	answer, err := u.client.ListOffsets(u.t.Context(), &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: {kafka.LastOffsetOf(0)}}})
	if err != nil {
		u.t.Fatal(err)
	}
	var list []messageCopy
	u.records(topic, 0, answer.Topics[topic][0].LastOffset, func(r *kafka.Record) {
		key, err := kafka.ReadAll(r.Key)
		if err != nil {
			u.t.Fatal(err)
		}
		value, err := kafka.ReadAll(r.Value)
		if err != nil {
			u.t.Fatal(err)
		}
		c := messageCopy{header: func(name string) string { return header(r, name) }}
		if c.message, err = events.ParseMessage("ce_", c.header, value); err != nil {
			u.t.Fatal(err)
		}
		if string(key) != c.message.Group {
			u.t.Errorf("key %q, want %q", key, c.message.Group)
		}
		list = append(list, c)
	})
	return list
}

// awaitOffset waits until the group has an offset in a topic of one partition.
func (u *tool) awaitOffset(what, topic string, want int64) {
	u.t.Helper()
	ctx := bounded(u.t)
	for {
		answer, err := u.client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: "codea1." + u.run + ".worker", Topics: map[string][]int{topic: {0}}})
		if err != nil {
			u.t.Fatalf("%s: %v", what, err)
		}
		if p := answer.Topics[topic]; len(p) == 1 && p[0].CommittedOffset == want {
			return
		}
		select {
		case <-time.After(often):
		case <-ctx.Done():
			u.t.Fatalf("%s: the group stands at %+v of %s, want %d", what, answer.Topics[topic], topic, want)
		}
	}
}

func header(r *kafka.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// commits returns the commits of the group, -1 for none.
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

// await waits until the group has the wanted commits.
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

// firsts returns for each partition the offset of the first payload that chosen
// selects, or the end.
func (u *tool) firsts(chosen func(payload) bool) func() map[int]int64 {
	lie := u.payloads(u.run)
	return func() map[int]int64 {
		committer := u.ends()
		for partition, list := range lie {
			if i := slices.IndexFunc(list, chosen); i >= 0 {
				committer[partition] = list[i].offset
			}
		}
		return committer
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
