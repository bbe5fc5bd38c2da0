package kafkabus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"codea1/events"
	"codea1/events/internal/client"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

const prefix = "codea1."

func payloadTopic(t events.Type) string { return prefix + string(t) }

// journalTopic and those below cannot be payload topics: no event type begins
// with journal, lease, dead or retry. Names have no dots.
func journalTopic(run string) string { return prefix + "journal." + run }

func leaseTopic(run string) string { return prefix + "lease." + run }

func deadTopic(run string) string { return prefix + "dead." + run }

func retryTopic(run, set string) string { return prefix + "retry." + run + "." + set }

// place is a partition of a payload topic, or the one of a set's retry topic.
type place struct {
	typ       events.Type
	partition int
	retries   string // the set; empty for a payload topic
}

func (p place) topic(run string) string {
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
			// What a run has once said is not forgotten.
			{ConfigName: "retention.ms", ConfigValue: "-1"},
			{ConfigName: "retention.bytes", ConfigValue: "-1"},
			{ConfigName: "max.message.bytes", ConfigValue: strconv.Itoa(maxRecordBytes)},
			// A payload is compressed already where that is worth it.
			{ConfigName: "compression.type", ConfigValue: "producer"},
		},
	}
	if b.config.Replicas >= 3 {
		config.ConfigEntries = append(config.ConfigEntries, kafka.ConfigEntry{ConfigName: "min.insync.replicas", ConfigValue: "2"})
	}
	return config
}

// create makes the topics that do not exist. Without permission to, it fails for
// one that nobody else has made.
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
			// Who must not create is not told of a topic that is there.
			if _, missing := b.lastOffset(limited, name); missing != nil {
				return fmt.Errorf("create topic %s: %w; permit it for codea1.*, or create the topic beforehand", name, err)
			}
		default:
			return fmt.Errorf("create topic %s: %w", name, err)
		}
	}
	return nil
}

// payloadTopics creates what is missing and returns the number of partitions
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
		b.logger.Warn("kafka: topics that exist keep fewer replicas than asked for; kafka-reassign-partitions gives them more",
			"topics", prefix+"*", "replicas", fewest, "wanted", b.config.Replicas)
	}
	return partitions, nil
}

// HasRun implements events.Broker. Of a name that is none it is certain once this
// client has asked the brokers anew.
func (b *Bus) HasRun(ctx context.Context, run string) (bool, error) {
	if err := client.Ended(ctx, b.ctx); err != nil {
		return false, err
	}
	if err := events.ValidName(run); err != nil {
		return false, err
	}
	for began := time.Now(); ; {
		_, err := b.end(ctx, journalTopic(run))
		if err == nil {
			return true, nil
		}
		isNone := errors.Is(err, kafka.UnknownTopicOrPartition) || errors.Is(err, protocol.ErrNoTopic)
		if isNone && time.Since(began) > 2*metadataTTL {
			return false, nil
		}
		if !isUnknown(err) {
			return false, fmt.Errorf("kafka: look for run %s: %w", run, err)
		}
		if err := client.Pause(ctx, b.ctx, retryPause); err != nil {
			return false, err
		}
	}
}

// end returns the offset after the last record of a topic's first partition.
func (b *Bus) end(ctx context.Context, topic string) (int64, error) {
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stop := context.AfterFunc(b.ctx, cancel)
	defer stop()
	end, err := b.lastOffset(limited, topic)
	if ended := client.Ended(ctx, b.ctx); err != nil && ended != nil {
		return 0, ended
	}
	return end, err
}

// lastOffset is end for who works on while the bus closes.
func (b *Bus) lastOffset(ctx context.Context, topic string) (int64, error) {
	answer, err := b.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{topic: {kafka.LastOffsetOf(0)}},
	})
	if err != nil {
		return 0, fmt.Errorf("topic %s: %w", topic, err)
	}
	found := answer.Topics[topic]
	if len(found) == 0 {
		return 0, fmt.Errorf("topic %s: %w", topic, kafka.UnknownTopicOrPartition)
	}
	if err := found[0].Error; err != nil {
		return 0, fmt.Errorf("topic %s: %w", topic, err)
	}
	return found[0].LastOffset, nil
}
