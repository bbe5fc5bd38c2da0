package eventlog

import (
	"hash/maphash"
	"sync/atomic"
)

// seen knows in memory which event IDs a log cannot have, so that a new event
// costs no search: looking in vain goes through everything Badger has in memory.
// It errs on one side: what it does not rule out is looked up.
type seen struct {
	seed  maphash.Seed
	older atomic.Pointer[bloom] // of the events that were there before; nil until they are read
	newer []*bloom              // of the events since, each for twice as many as the one before
	room  int                   // how many IDs the last of newer can still take
	full  bool                  // the log is too large to know
}

const (
	// seenFirst is how many IDs the first filter of new events takes.
	seenFirst = 1 << 15
	// seenMost is above how many IDs a log is too large: the filters of that many
	// take 100 MB.
	seenMost = 1 << 26
)

func newSeen() *seen { return &seen{seed: maphash.MakeSeed()} }

func (s *seen) hash(id eventID) uint64 { return maphash.Bytes(s.seed, id[:]) }

// add takes down an event that is new in the log.
func (s *seen) add(id eventID) {
	if s.full {
		return
	}
	if s.room == 0 {
		s.room = seenFirst << len(s.newer)
		if s.full = s.room > seenMost/2; s.full {
			s.newer = nil
			return
		}
		s.newer = append(s.newer, newBloom(s.room))
	}
	s.room--
	s.newer[len(s.newer)-1].add(s.hash(id))
}

// rulesOut reports whether the log has no event with an ID.
func (s *seen) rulesOut(id eventID) bool {
	older := s.older.Load()
	if older == nil || s.full {
		return false
	}
	h := s.hash(id)
	if older.has(h) {
		return false
	}
	for _, b := range s.newer {
		if b.has(h) {
			return false
		}
	}
	return true
}

// bloom is a set of hashes that may take one for another: of a hundred that are
// not in it, one. All bits of a hash lie in one cache line.
type bloom struct{ lines [][8]uint64 }

// bloomBits is how many bits a hash takes, and bloomTests how many are set.
const (
	bloomBits  = 12
	bloomTests = 6
)

func newBloom(n int) *bloom { return &bloom{make([][8]uint64, 1+n*bloomBits/512)} }

// line returns where a hash lies, and its bits there, nine for each.
func (b *bloom) line(h uint64) (line *[8]uint64, bits uint64) {
	line = &b.lines[(h>>32)*uint64(len(b.lines))>>32]
	return line, h * 0x9e3779b97f4a7c15 >> 8
}

func (b *bloom) add(h uint64) {
	line, bits := b.line(h)
	for range bloomTests {
		line[bits>>6&7] |= 1 << (bits & 63)
		bits >>= 9
	}
}

func (b *bloom) has(h uint64) bool {
	line, bits := b.line(h)
	for range bloomTests {
		if line[bits>>6&7]&(1<<(bits&63)) == 0 {
			return false
		}
		bits >>= 9
	}
	return true
}

// remember reads the IDs that are in the log, in the background, before the
// first batch is admitted to it. The caller holds l.admitting, and keeps the
// store open.
func (l *Log) remember() {
	l.seen = newSeen()
	n := l.tail.seq
	if n == 0 {
		l.seen.older.Store(newBloom(0))
		return
	}
	if n > seenMost {
		l.seen.full = true
		return
	}
	older, read := newBloom(int(n)), uint64(0)
	take := func(e indexEntry) {
		older.add(l.seen.hash(e.id))
		read++
	}
	for _, e := range l.recent.list() {
		take(e)
	}
	txn, to := l.db.NewTransaction(false), l.indexed
	l.background.Go(func() {
		defer txn.Discard()
		for e, err := range l.indexEntries(txn, to) {
			if err != nil || l.closing.Load() {
				return
			}
			take(e)
		}
		if read == n { // otherwise the index is damaged, and looking there says so
			l.seen.older.Store(older)
		}
	})
}
