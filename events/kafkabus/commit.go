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

	"codea1/events"
	"codea1/events/internal/client"

	"github.com/segmentio/kafka-go"
)

// catchUp is how long a round waits for the ledger to reach the end of the
// journal.
const catchUp = time.Second

func groupOf(run, set string) string { return prefix + run + "." + set }

// committer tells tools how far sets of consumers are: at intervals it commits
// their marks to consumer groups that have no members. Every process that
// consumes does; a commit names the offset in the journal up to which its
// process had read, so that one that is behind changes nothing. Nobody but
// tools reads what is committed.
type committer struct {
	journal *journal
	done    chan struct{} // closed when the last round is over

	mu     sync.Mutex
	sets   []string // not empty once the rounds have begun
	closed bool

	ends     map[place]int64 // of the partitions, at the last round
	failures int             // rounds in a row
}

// add has the marks of a set committed from now on.
func (c *committer) add(set string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || slices.Contains(c.sets, set) {
		return
	}
	c.sets = append(c.sets, set)
	if len(c.sets) == 1 {
		c.journal.tasks.Go(c.run)
	}
}

// wait returns after the last round, if there is any.
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
	j := c.journal
	interval := j.bus.config.CommitInterval
	timer := time.NewTimer(rand.N(interval)) // members that start together take turns
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			c.report(c.round())
			timer.Reset(interval)
		case <-j.written:
			c.report(c.last())
			return
		}
	}
}

// last is a round that gives new groups the time to find a coordinator.
func (c *committer) last() error {
	for {
		err := c.round()
		if !isUncoordinated(err) || client.Pause(c.journal.ctx, c.journal.ctx, retryPause) != nil {
			return err
		}
	}
}

// isUncoordinated reports whether no broker looks after a group yet, or a new
// one does.
func isUncoordinated(err error) bool {
	return errors.Is(err, kafka.GroupCoordinatorNotAvailable) || errors.Is(err, kafka.NotCoordinatorForGroup) ||
		errors.Is(err, kafka.GroupLoadInProgress)
}

// report logs when marks cannot be committed for more than one round, and when
// they can again.
func (c *committer) report(err error) {
	logger, run := c.journal.bus.logger, c.journal.run
	switch {
	case err != nil:
		c.failures++
		if c.failures == 2 {
			logger.Warn("kafka: cannot commit to the groups that tools read, trying again", "run", run, "error", err)
		}
	default:
		if c.failures >= 2 {
			logger.Info("kafka: commits to the groups that tools read again", "run", run)
		}
		c.failures = 0
	}
}

// round commits what has changed. It asks for the commits first and for the ends
// second: what is past the end then is of a topic that was deleted.
func (c *committer) round() error {
	c.mu.Lock()
	sets := slices.Clone(c.sets)
	c.mu.Unlock()
	found := make(map[string]map[place]committed)
	var failed []error
	places := make(map[place]bool)
	for _, set := range sets {
		wanted := c.places(set)
		for _, at := range wanted {
			places[at] = true
		}
		var err error
		if found[set], err = c.fetch(set, wanted); err != nil {
			failed = append(failed, err)
		}
	}
	end, ends, err := c.list(places)
	if err != nil {
		return errors.Join(append(failed, err)...)
	}
	before := c.ends
	c.ends = ends
	limited, cancel := context.WithTimeout(c.journal.ctx, catchUp)
	defer cancel()
	if c.journal.wait(limited, limited, end) != nil {
		before = nil
	}
	for set, have := range found {
		if err := c.commit(set, c.due(set, have, before, end)); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// places returns the partitions that a set consumes from.
func (c *committer) places(set string) []place {
	var list []place
	c.journal.look(func(l *ledger) {
		s := l.sets[set]
		for typ := range s.types {
			for p := range c.journal.bus.partitions[typ] {
				list = append(list, place{typ: typ, partition: p})
			}
		}
		if s.copied > 0 {
			list = append(list, place{retries: set})
		}
	})
	return list
}

// due returns what is to be committed. Before are the ends of the partitions
// one round ago: a payload that lay there then, and that no note up to the end
// of the journal now tells of, is not this run's. It is nil when the ledger
// does not reach that far.
func (c *committer) due(set string, have map[place]committed, before map[place]int64, end int64) map[place]committed {
	list := make(map[place]committed)
	c.journal.look(func(l *ledger) {
		if c.journal.failed != nil {
			return
		}
		for at, old := range have {
			if _, ok := c.ends[at]; !ok {
				continue // a retry topic that was deleted
			}
			if old.offset > c.ends[at] || old.seen > end {
				old = nothing
			}
			now := committed{seen: l.end}
			var waiting bool
			now.offset, waiting = l.mark(l.sets[set], at)
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

// committed is what a group has for a partition.
type committed struct {
	offset int64 // -1 for nothing
	seen   int64 // offset in the journal after the last note that it follows from; -1 for none
}

var nothing = committed{-1, -1}

// replaces reports whether the mark shall take the place of what is committed.
// It goes back only where a message waits that an older view did not know: one
// that is redelivered, or whose note came late. Where none waits the other may
// have been set by who saw a later end of the partition.
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

// fetch returns what the group of a set has.
func (c *committer) fetch(set string, places []place) (map[place]committed, error) {
	limited, cancel := context.WithTimeout(c.journal.ctx, requestTimeout)
	defer cancel()
	request := &kafka.OffsetFetchRequest{GroupID: groupOf(c.journal.run, set), Topics: make(map[string][]int)}
	for _, at := range places {
		topic := at.topic(c.journal.run)
		request.Topics[topic] = append(request.Topics[topic], at.partition)
	}
	answer, err := c.journal.bus.client.OffsetFetch(limited, request)
	if err == nil && !errors.Is(answer.Error, kafka.GroupIdNotFound) {
		err = answer.Error
	}
	if err != nil {
		return nil, fmt.Errorf("group %s: %w", request.GroupID, err)
	}
	have := make(map[place]committed)
	for _, at := range places {
		have[at] = nothing
		topic := at.topic(c.journal.run)
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

// commit stores marks as a client does that is no member of the group.
func (c *committer) commit(set string, marks map[place]committed) error {
	if len(marks) == 0 {
		return nil
	}
	limited, cancel := context.WithTimeout(c.journal.ctx, requestTimeout)
	defer cancel()
	request := &kafka.OffsetCommitRequest{
		GroupID: groupOf(c.journal.run, set), GenerationID: -1, Topics: make(map[string][]kafka.OffsetCommit),
	}
	for at, mark := range marks {
		topic := at.topic(c.journal.run)
		request.Topics[topic] = append(request.Topics[topic], kafka.OffsetCommit{
			Partition: at.partition, Offset: mark.offset, Metadata: strconv.FormatInt(mark.seen, 10),
		})
	}
	answer, err := c.journal.bus.client.OffsetCommit(limited, request)
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

// list returns the offsets after the last record of the journal and of
// partitions; a retry topic that was deleted has none.
func (c *committer) list(places map[place]bool) (int64, map[place]int64, error) {
	limited, cancel := context.WithTimeout(c.journal.ctx, requestTimeout)
	defer cancel()
	typeOf := make(map[string]events.Type)
	ends := make(map[place]int64)
	request := &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{c.journal.topic: {kafka.LastOffsetOf(0)}}}
	for at := range places {
		topic := at.topic(c.journal.run)
		if at.retries == "" {
			typeOf[topic] = at.typ
			request.Topics[topic] = append(request.Topics[topic], kafka.LastOffsetOf(at.partition))
			continue
		}
		end, err := c.journal.bus.lastOffset(limited, topic)
		if err == nil {
			ends[at] = end
		} else if !isUnknown(err) {
			return 0, nil, err
		}
	}
	answer, err := c.journal.bus.client.ListOffsets(limited, request)
	if err != nil {
		return 0, nil, fmt.Errorf("ends of partitions: %w", err)
	}
	var end int64
	for topic, partitions := range answer.Topics {
		for _, p := range partitions {
			switch {
			case p.Error != nil:
				return 0, nil, fmt.Errorf("topic %s partition %d: %w", topic, p.Partition, p.Error)
			case topic == c.journal.topic:
				end = p.LastOffset
			default:
				ends[place{typ: typeOf[topic], partition: p.Partition}] = p.LastOffset
			}
		}
	}
	return end, ends, nil
}
