package kafkabus

import (
	"cmp"
	"slices"
)

// row is a partition of a payload topic as far as the run goes.
type row struct {
	entries []int // indexes of its entries, in the order of their offsets
	end     int64 // offset after the last payload that a note tells of
}

func (l *ledger) row(at place) *row {
	r := l.rows[at]
	if r == nil {
		r = new(row)
		l.rows[at] = r
	}
	return r
}

// position returns where in its row an offset stands, or would.
func (l *ledger) position(r *row, offset int64) int {
	pos, _ := slices.BinarySearchFunc(r.entries, offset, func(i int, offset int64) int {
		return cmp.Compare(l.events[i].offset, offset)
	})
	return pos
}

// enter adds entry i to its row. Mostly it is the last one there; of two
// publishers the later payload may have the earlier note.
func (l *ledger) enter(r *row, i int) {
	e := &l.events[i]
	if n := len(r.entries); n == 0 || l.events[r.entries[n-1]].offset < e.offset {
		r.entries = append(r.entries, i)
		return
	}
	r.entries = slices.Insert(r.entries, l.position(r, e.offset), i)
	for _, s := range l.sets {
		l.reopen(s, i)
	}
}

// reopen has the set look at entry i again.
func (l *ledger) reopen(s *set, i int) {
	e := &l.events[i]
	at := e.spot().place
	s.passed[at] = min(s.passed[at], l.position(l.rows[at], e.offset))
}

// mark returns the offset of the first payload in a partition that the set has
// not finished, and whose copy does not wait in its retry topic; or of the first
// copy there. When there is none, waiting is false and the offset is the one
// after the last, 0 where nothing was.
func (l *ledger) mark(s *set, at place) (offset int64, waiting bool) {
	if at.retries != "" {
		return s.retryMark()
	}
	r := l.rows[at]
	if r == nil {
		return 0, false
	}
	k := s.passed[at]
	for k < len(r.entries) && s.isElsewhere(r.entries[k]) {
		k++
	}
	s.passed[at] = k
	if k < len(r.entries) {
		return l.events[r.entries[k]].offset, true
	}
	return r.end, false
}

// isElsewhere reports whether the set needs a payload no more where it is.
func (s *set) isElsewhere(i int) bool {
	_, copied := s.copies[i]
	return copied || s.isFinished(i)
}

func (s *set) retryMark() (offset int64, waiting bool) {
	offset = s.copied
	for _, at := range s.copies {
		offset = min(offset, at)
	}
	return offset, len(s.copies) > 0
}
