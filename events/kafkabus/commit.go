package kafkabus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"codea1/events"
	"codea1/events/internal/client"
)

// catchUp bounds the wait of a commit until the ledger has the whole control
// topic.
const catchUp = time.Second

func groupOf(run, set string) string { return prefix + run + "." + set }

// committer commits offsets for other tools: at intervals it writes the
// progress of worker sets to consumer groups without members. Every process
// that consumes does so. A commit contains the control offset up to which its
// process had read, so a process that is behind changes nothing.
type committer struct {
	control *control
	done    chan struct{} // closed after the last commit

	mu     sync.Mutex
	sets   []string // if not empty, run has been started
	closed bool

	ends     map[topicPartition]int64 // of the partitions, at the last commit
	failures int                      // in a row
}

// add includes a worker set in the commits.
func (c *committer) add(set string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || slices.Contains(c.sets, set) {
		return
	}
	c.sets = append(c.sets, set)
	if len(c.sets) == 1 {
		c.control.tasks.Go(c.run)
	}
}

// wait returns after the last commit, if run has been started.
func (c *committer) wait() {
	c.mu.Lock()
	c.closed = true
	begun := len(c.sets) > 0
	c.mu.Unlock()
	if begun {
		<-c.done
	}
}

// run commits at intervals, and once more when the last answer is stored.
func (c *committer) run() {
	defer close(c.done)
	ctl := c.control
	interval := ctl.bus.config.CommitInterval
	timer := time.NewTimer(rand.N(interval)) // members that start together commit at different times
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			c.report(c.round())
			timer.Reset(interval)
		case <-ctl.written:
			c.report(c.last())
			return
		}
	}
}

// last commits once, and gives new groups the time to get a coordinator.
func (c *committer) last() error {
	for {
		err := c.round()
		if !isUncoordinated(err) || client.Pause(c.control.ctx, c.control.ctx, retryPause) != nil {
			return err
		}
	}
}

// isUncoordinated reports whether a group has no coordinator yet, or is about
// to change it.
func isUncoordinated(err error) bool {
	return errors.Is(err, kafka.GroupCoordinatorNotAvailable) || errors.Is(err, kafka.NotCoordinatorForGroup) ||
		errors.Is(err, kafka.GroupLoadInProgress)
}

// report logs the second failure in a row, and the success after it.
func (c *committer) report(err error) {
	logger, run := c.control.bus.logger, c.control.run
	switch {
	case isOutage(err): // it is logged
	case err != nil:
		c.failures++
		if c.failures == 2 {
			logger.Warn("kafka: cannot commit offsets for other tools, trying again", "run", run, "error", err)
		}
	default:
		if c.failures >= 2 {
			logger.Info("kafka: commits offsets for other tools again", "run", run)
		}
		c.failures = 0
	}
}

// round commits the changed offsets. It reads the commits before the ends: a
// commit past the end belongs to a topic that was deleted.
func (c *committer) round() error {
	c.mu.Lock()
	sets := slices.Clone(c.sets)
	c.mu.Unlock()
	found := make(map[string]map[topicPartition]committed)
	var failed []error
	partitions := make(map[topicPartition]bool)
	for _, set := range sets {
		wanted := c.partitionsOf(set)
		for _, at := range wanted {
			partitions[at] = true
		}
		var err error
		if found[set], err = c.fetch(set, wanted); err != nil {
			failed = append(failed, err)
		}
	}
	end, ends, err := c.list(partitions)
	if err != nil {
		return errors.Join(append(failed, err)...)
	}
	before := c.ends
	c.ends = ends
	limited, cancel := context.WithTimeout(c.control.ctx, catchUp)
	defer cancel()
	if c.control.wait(limited, limited, end) != nil {
		before = nil
	}
	for set, have := range found {
		if err := c.commit(set, c.due(set, have, before, end)); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// partitionsOf returns the partitions from which a worker set consumes.
func (c *committer) partitionsOf(set string) []topicPartition {
	var list []topicPartition
	c.control.look(func(l *ledger) {
		s := l.sets[set]
		for typ := range s.types {
			for p := range c.control.bus.partitions[typ] {
				list = append(list, topicPartition{typ: typ, partition: p})
			}
		}
		if s.copied > 0 {
			list = append(list, topicPartition{retries: set})
		}
	})
	return list
}

// due returns the offsets to commit. before has the ends of the partitions at
// the last commit, or is nil if the ledger does not have the whole control
// topic: a payload before such an end without a change belongs to another run.
func (c *committer) due(set string, have map[topicPartition]committed, before map[topicPartition]int64, end int64) map[topicPartition]committed {
	list := make(map[topicPartition]committed)
	c.control.look(func(l *ledger) {
		if c.control.failed != nil {
			return
		}
		for at, old := range have {
			if _, ok := c.ends[at]; !ok {
				continue // a deleted retry topic
			}
			if old.offset > c.ends[at] || old.seen > end {
				old = nothing
			}
			now := committed{seen: l.end}
			var waiting bool
			now.offset, waiting = l.offsetToCommit(l.sets[set], at)
			if !waiting {
				now.offset = min(max(now.offset, before[at]), c.ends[at])
			}
			if now.replaces(old, waiting) {
				list[at] = now
			}
		}
	})
	return list
}

// committed is the commit of a group for a partition.
type committed struct {
	offset int64 // -1 without a commit
	seen   int64 // control offset after the last change that the commit considers; -1 without a commit
}

var nothing = committed{-1, -1}

// replaces reports whether to overwrite an old commit. The offset goes back
// only if an unfinished event is there that the old commit did not know: a
// redelivered event, or one whose change came late. If no event is unfinished,
// the old commit may come from a process that saw a later end of the partition.
func (m committed) replaces(old committed, waiting bool) bool {
	switch {
	case old.offset < 0:
		return waiting || m.offset > 0
	case old.seen > m.seen:
		return false
	case waiting:
		return m.offset != old.offset
	}
	return m.offset > old.offset
}

// fetch returns the commits of a worker set's group.
func (c *committer) fetch(set string, partitions []topicPartition) (map[topicPartition]committed, error) {
	limited, cancel := context.WithTimeout(c.control.ctx, requestTimeout)
	defer cancel()
	request := &kafka.OffsetFetchRequest{GroupID: groupOf(c.control.run, set), Topics: make(map[string][]int)}
	for _, at := range partitions {
		topic := at.topic(c.control.run)
		request.Topics[topic] = append(request.Topics[topic], at.partition)
	}
	answer, err := c.control.bus.client.OffsetFetch(limited, request)
	if err == nil && !errors.Is(answer.Error, kafka.GroupIdNotFound) {
		err = answer.Error
	}
	if err != nil {
		return nil, fmt.Errorf("group %s: %w", request.GroupID, err)
	}
	have := make(map[topicPartition]committed)
	for _, at := range partitions {
		have[at] = nothing
		topic := at.topic(c.control.run)
		for _, p := range answer.Topics[topic] {
			if p.Partition != at.partition {
				continue
			}
			if p.Error != nil {
				return nil, fmt.Errorf("group %s: topic %s partition %d: %w", request.GroupID, topic, p.Partition, p.Error)
			}
			seen, err := strconv.ParseInt(p.Metadata, 10, 64)
			if err != nil {
				seen = -1
			}
			have[at] = committed{p.CommittedOffset, seen}
		}
	}
	return have, nil
}

// commit writes offsets as a client that is not a member of the group.
func (c *committer) commit(set string, offsets map[topicPartition]committed) error {
	if len(offsets) == 0 {
		return nil
	}
	limited, cancel := context.WithTimeout(c.control.ctx, requestTimeout)
	defer cancel()
	request := &kafka.OffsetCommitRequest{
		GroupID: groupOf(c.control.run, set), GenerationID: -1, Topics: make(map[string][]kafka.OffsetCommit),
	}
	for at, now := range offsets {
		topic := at.topic(c.control.run)
		request.Topics[topic] = append(request.Topics[topic], kafka.OffsetCommit{
			Partition: at.partition, Offset: now.offset, Metadata: strconv.FormatInt(now.seen, 10),
		})
	}
	answer, err := c.control.bus.client.OffsetCommit(limited, request)
	if err != nil {
		return fmt.Errorf("group %s: %w", request.GroupID, err)
	}
	for topic, partitions := range answer.Topics {
		for _, p := range partitions {
			if p.Error != nil {
				return fmt.Errorf("group %s: topic %s partition %d: %w", request.GroupID, topic, p.Partition, p.Error)
			}
		}
	}
	return nil
}

// list returns the end of the control topic and the ends of partitions. A
// deleted retry topic has no end.
func (c *committer) list(partitions map[topicPartition]bool) (int64, map[topicPartition]int64, error) {
	limited, cancel := context.WithTimeout(c.control.ctx, requestTimeout)
	defer cancel()
	typeOf := make(map[string]events.Type)
	ends := make(map[topicPartition]int64)
	request := &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{c.control.topic: {kafka.LastOffsetOf(0)}}}
	for at := range partitions {
		topic := at.topic(c.control.run)
		if at.retries == "" {
			typeOf[topic] = at.typ
			request.Topics[topic] = append(request.Topics[topic], kafka.LastOffsetOf(at.partition))
			continue
		}
		end, err := c.control.bus.lastOffset(limited, topic)
		if err == nil {
			ends[at] = end
		} else if !isUnknown(err) {
			return 0, nil, err
		}
	}
	answer, err := c.control.bus.client.ListOffsets(limited, request)
	if err != nil {
		return 0, nil, fmt.Errorf("ends of partitions: %w", err)
	}
	var end int64
	for topic, partitions := range answer.Topics {
		for _, p := range partitions {
			switch {
			case p.Error != nil:
				return 0, nil, fmt.Errorf("topic %s partition %d: %w", topic, p.Partition, p.Error)
			case topic == c.control.topic:
				end = p.LastOffset
			default:
				ends[topicPartition{typ: typeOf[topic], partition: p.Partition}] = p.LastOffset
			}
		}
	}
	return end, ends, nil
}
