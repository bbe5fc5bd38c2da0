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
	at := place{e.typ, e.partition}
	s.passed[at] = min(s.passed[at], l.position(l.rows[at], e.offset))
}

// mark returns the offset of the first payload in a partition that the set has
// not finished. When it has finished all, waiting is false and the offset is
// the one after the last, 0 where there was none.
func (l *ledger) mark(s *set, at place) (offset int64, waiting bool) {
	r := l.rows[at]
	if r == nil {
		return 0, false
	}
	k := s.passed[at]
	for k < len(r.entries) && s.isFinished(r.entries[k]) {
		k++
	}
	s.passed[at] = k
	if k < len(r.entries) {
		return l.events[r.entries[k]].offset, true
	}
	return r.end, false
}
