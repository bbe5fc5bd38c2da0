package kafkabus

import (
	"cmp"
	"slices"
)

// runPartition is a partition of a payload topic, limited to the events of the
// run.
type runPartition struct {
	events []int // indexes in ledger.events, ordered by offset
	end    int64 // offset after the last payload that a change names
}

func (l *ledger) runPartition(at topicPartition) *runPartition {
	r := l.partitions[at]
	if r == nil {
		r = new(runPartition)
		l.partitions[at] = r
	}
	return r
}

// rank returns the rank that an offset has in a partition, or would have.
func (l *ledger) rank(r *runPartition, offset int64) int {
	pos, _ := slices.BinarySearchFunc(r.events, offset, func(i int, offset int64) int {
		return cmp.Compare(l.events[i].offset, offset)
	})
	return pos
}

// enter adds event i to its partition, usually at the end. If two processes
// publish, the later payload may have the earlier change.
func (l *ledger) enter(r *runPartition, i int) {
	e := &l.events[i]
	if n := len(r.events); n == 0 || l.events[r.events[n-1]].offset < e.offset {
		r.events = append(r.events, i)
		return
	}
	r.events = slices.Insert(r.events, l.rank(r, e.offset), i)
	for _, s := range l.sets {
		l.reopen(s, i)
	}
}

// reopen makes offsetToCommit consider event i again.
func (l *ledger) reopen(s *workerSet, i int) {
	e := &l.events[i]
	at := e.location().topicPartition
	s.passed[at] = min(s.passed[at], l.rank(l.partitions[at], e.offset))
}

// offsetToCommit returns the offset of the first payload in a partition that is
// not finished and has no copy, or of the first copy in a retry topic. If there
// is none, waiting is false and the offset is the one after the last payload,
// or 0.
func (l *ledger) offsetToCommit(s *workerSet, at topicPartition) (offset int64, waiting bool) {
	if at.retries != "" {
		return s.retryOffset()
	}
	r := l.partitions[at]
	if r == nil {
		return 0, false
	}
	k := s.passed[at]
	for k < len(r.events) && s.isElsewhere(r.events[k]) {
		k++
	}
	s.passed[at] = k
	if k < len(r.events) {
		return l.events[r.events[k]].offset, true
	}
	return r.end, false
}

// isElsewhere reports whether event i is finished or has a copy.
func (s *workerSet) isElsewhere(i int) bool {
	_, copied := s.copies[i]
	return copied || s.isFinished(i)
}

func (s *workerSet) retryOffset() (offset int64, waiting bool) {
	offset = s.copied
	for _, at := range s.copies {
		offset = min(offset, at)
	}
	return offset, len(s.copies) > 0
}
