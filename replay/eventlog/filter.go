package eventlog

import (
	"hash/maphash"
	"sync/atomic"
)

// filter knows in memory which event IDs the log does not have, so that a new
// event needs no lookup: a lookup without a result searches everything that
// Badger has in memory. An ID that the filter does not exclude may still be new.
//
// Without it an append of events of 1 KB takes 1.5 times the CPU time
// (BenchmarkFilter).
type filter struct {
	seed  maphash.Seed
	older atomic.Pointer[bloom] // of the events before the log was opened; nil until they are read
	newer []*bloom              // of the events since; each has twice the capacity of the one before
	room  int                   // free capacity of the last of newer
	off   bool                  // the log is too large
}

const (
	// filterFirst is the capacity of the first filter of new events.
	filterFirst = 1 << 15
	// filterMost is the largest log that is filtered: the filters of so many
	// events take 100 MB.
	filterMost = 1 << 26
)

func newFilter() *filter { return &filter{seed: maphash.MakeSeed()} }

func (f *filter) hash(id eventID) uint64 { return maphash.Bytes(f.seed, id[:]) }

// add adds an event that is new in the log.
func (f *filter) add(id eventID) {
	if f.off {
		return
	}
	if f.room == 0 {
		f.room = filterFirst << len(f.newer)
		if f.off = f.room > filterMost/2; f.off {
			f.newer = nil
			return
		}
		f.newer = append(f.newer, newBloom(f.room))
	}
	f.room--
	f.newer[len(f.newer)-1].add(f.hash(id))
}

// excludes reports whether the log does not have an event with an ID.
func (f *filter) excludes(id eventID) bool {
	older := f.older.Load()
	if older == nil || f.off {
		return false
	}
	h := f.hash(id)
	if older.has(h) {
		return false
	}
	for _, b := range f.newer {
		if b.has(h) {
			return false
		}
	}
	return true
}

// bloom is a Bloom filter of hashes: one in a hundred others is reported as
// contained. All bits of a hash are in one cache line.
type bloom struct{ lines [][8]uint64 }

const (
	bloomBits  = 12 // memory of a hash, in bits
	bloomTests = 6  // bits that a hash sets
)

func newBloom(n int) *bloom { return &bloom{make([][8]uint64, 1+n*bloomBits/512)} }

// line returns the cache line of a hash, and the numbers of its bits there, nine
// bits for each.
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

// fillFilter reads the IDs of the log in the background, before the first batch
// is admitted. The caller holds l.admitting and keeps the store open.
func (l *Log) fillFilter() {
	l.filter = newFilter()
	n := l.tail.seq
	if n == 0 {
		l.filter.older.Store(newBloom(0))
	}
	l.filter.off = n > filterMost || l.options.noFilter
	if n == 0 || l.filter.off {
		return
	}
	older, read := newBloom(int(n)), uint64(0)
	add := func(e indexEntry) {
		older.add(l.filter.hash(e.id))
		read++
	}
	for _, e := range l.recent.list() {
		add(e)
	}
	v, to := view{l, l.db.NewTransaction(false)}, l.indexed
	l.background.Go(func() {
		defer v.txn.Discard()
		for e, err := range v.indexEntries(to) {
			if err != nil || l.closing.Load() {
				return
			}
			add(e)
		}
		if read == n { // otherwise the index is damaged, and a lookup reports it
			l.filter.older.Store(older)
		}
	})
}
