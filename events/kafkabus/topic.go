package kafkabus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"codea1/events"
	"codea1/events/internal/client"
)

const prefix = "codea1."

func payloadTopic(t events.Type) string { return prefix + string(t) }

// controlTopic and the functions below return names that no payload topic has:
// no event type begins with control, lease, dead or retry. Names of runs have
// no dots.
func controlTopic(run string) string { return prefix + "control." + run }

func leaseTopic(run string) string { return prefix + "lease." + run }

func deadTopic(run string) string { return prefix + "dead." + run }

func retryTopic(run, set string) string { return prefix + "retry." + run + "." + set }

// topicPartition is a partition of a payload topic, or the partition of a retry
// topic.
type topicPartition struct {
	typ       events.Type
	partition int
	retries   string // the worker set of a retry topic; empty for a payload topic
}

func (p topicPartition) topic(run string) string {
	if p.retries != "" {
		return retryTopic(run, p.retries)
	}
	return payloadTopic(p.typ)
}

func (b *Bus) topicConfig(name string, partitions int) kafka.TopicConfig {
	config := kafka.TopicConfig{
		Topic: name, NumPartitions: partitions, ReplicationFactor: b.config.Replicas,
		ConfigEntries: []kafka.ConfigEntry{
			{ConfigName: "cleanup.policy", ConfigValue: "delete"},
			// Nothing is deleted by age or size.
			{ConfigName: "retention.ms", ConfigValue: "-1"},
			{ConfigName: "retention.bytes", ConfigValue: "-1"},
			{ConfigName: "max.message.bytes", ConfigValue: strconv.Itoa(maxRecordBytes)},
			// Payloads are compressed already if that saves space.
			{ConfigName: "compression.type", ConfigValue: "producer"},
		},
	}
	if b.config.Replicas >= 3 {
		config.ConfigEntries = append(config.ConfigEntries, kafka.ConfigEntry{ConfigName: "min.insync.replicas", ConfigValue: "2"})
	}
	return config
}

// create makes the topics that do not exist. Without permission to create
// topics it fails only for a topic that does not exist.
func (b *Bus) create(ctx context.Context, topics ...kafka.TopicConfig) error {
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stop := context.AfterFunc(b.ctx, cancel)
	defer stop()
	answer, err := b.client.CreateTopics(limited, &kafka.CreateTopicsRequest{Topics: topics})
	if err != nil {
		return errors.Join(client.Ended(ctx, b.ctx), err)
	}
	for name, err := range answer.Errors {
		switch {
		case err == nil || errors.Is(err, kafka.TopicAlreadyExists):
		case errors.Is(err, kafka.TopicAuthorizationFailed) || errors.Is(err, kafka.ClusterAuthorizationFailed):
			// A client without permission gets this error for an existing topic
			// too.
			if _, missing := b.lastOffset(limited, name); missing != nil {
				return fmt.Errorf("create topic %s: %w; permit it for codea1.*, or create the topic before", name, err)
			}
		default:
			return fmt.Errorf("create topic %s: %w", name, err)
		}
	}
	return nil
}

// payloadTopics creates the missing topics and returns the number of partitions
// of each.
func (b *Bus) payloadTopics(ctx context.Context) (map[events.Type]int, error) {
	types := events.Types()
	var topics []kafka.TopicConfig
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = payloadTopic(t)
		topics = append(topics, b.topicConfig(names[i], b.config.Partitions))
	}
	if err := b.create(ctx, topics...); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := b.client.Metadata(limited, &kafka.MetadataRequest{Topics: names})
	if err != nil {
		return nil, err
	}
	partitions := make(map[events.Type]int, len(types))
	fewest := b.config.Replicas
	for _, t := range answer.Topics {
		if t.Error != nil {
			return nil, fmt.Errorf("topic %s: %w", t.Name, t.Error)
		}
		for _, typ := range types {
			if payloadTopic(typ) == t.Name {
				partitions[typ] = len(t.Partitions)
			}
		}
		for _, p := range t.Partitions {
			fewest = min(fewest, len(p.Replicas))
		}
	}
	for _, t := range types {
		if partitions[t] == 0 {
			return nil, fmt.Errorf("topic %s: %w", payloadTopic(t), kafka.UnknownTopicOrPartition)
		}
	}
	if fewest < b.config.Replicas {
		b.logger.Warn("kafka: existing topics have fewer replicas than wanted; add some with kafka-reassign-partitions",
			"topics", prefix+"*", "replicas", fewest, "wanted", b.config.Replicas)
	}
	return partitions, nil
}

// HasRun implements events.Broker. It returns false only after this client has
// refreshed its metadata.
func (b *Bus) HasRun(ctx context.Context, run string) (bool, error) {
	if err := client.Ended(ctx, b.ctx); err != nil {
		return false, err
	}
	if err := events.ValidName(run); err != nil {
		return false, err
	}
	for began := time.Now(); ; {
		known := true
		err := b.ask(ctx, func() error {
			_, err := b.endNow(ctx, controlTopic(run))
			if errors.Is(err, kafka.UnknownTopicOrPartition) || errors.Is(err, protocol.ErrNoTopic) {
				known, err = false, nil
			}
			return err
		})
		switch {
		case err != nil:
			return false, fmt.Errorf("kafka: look for run %s: %w", run, err)
		case known:
			return true, nil
		case time.Since(began) > 2*metadataTTL:
			return false, nil
		}
		if err := client.Pause(ctx, b.ctx, retryPause); err != nil {
			return false, err
		}
	}
}

// end returns the offset after the last record of a topic's first partition. It
// waits until an outage ends.
func (b *Bus) end(ctx context.Context, topic string) (end int64, err error) {
	err = b.ask(ctx, func() error {
		var err error
		end, err = b.endNow(ctx, topic)
		return err
	})
	return end, err
}

// endNow is end with one request.
func (b *Bus) endNow(ctx context.Context, topic string) (int64, error) {
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stop := context.AfterFunc(b.ctx, cancel)
	defer stop()
	return b.lastOffset(limited, topic)
}

// lastOffset is endNow without a time limit, and without an end by Close.
func (b *Bus) lastOffset(ctx context.Context, topic string) (int64, error) {
	found, err := b.offsets(ctx, topic, kafka.LastOffsetOf(0))
	return found.LastOffset, err
}

// offsets returns the first or the last offset of a partition.
func (b *Bus) offsets(ctx context.Context, topic string, wanted kafka.OffsetRequest) (kafka.PartitionOffsets, error) {
	answer, err := b.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: {wanted}}})
	if err != nil {
		return kafka.PartitionOffsets{}, fmt.Errorf("topic %s: %w", topic, err)
	}
	found := answer.Topics[topic]
	if len(found) == 0 {
		return kafka.PartitionOffsets{}, fmt.Errorf("topic %s: %w", topic, kafka.UnknownTopicOrPartition)
	}
	if err := found[0].Error; err != nil {
		return kafka.PartitionOffsets{}, fmt.Errorf("topic %s: %w", topic, err)
	}
	return found[0], nil
}
