package eventlog

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/dgraph-io/ristretto/v2/z"
)

// filter knows in memory which event IDs the log does not have, so that a new
// event needs no lookup: a lookup without a result searches everything that
// Badger has in memory. An ID that the filter does not exclude may still be new.
//
// Without it an append of events of 1 KB takes 1.7 times the CPU time
// (BenchmarkFilter).
type filter struct {
	seed  maphash.Seed
	older atomic.Pointer[z.Bloom] // of the events before the log was opened; nil until they are read
	newer []*z.Bloom              // of the events since; each has twice the capacity of the one before
	room  int                     // free capacity of the last of newer
	off   bool                    // the log is too large
}

const (
	// filterFirst is the capacity of the first filter of new events.
	filterFirst = 1 << 15
	// filterMost is the largest log that is filtered: the filters of so many
	// events take 64 to 128 MB.
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
	f.newer[len(f.newer)-1].Add(f.hash(id))
}

// excludes reports whether the log does not have an event with an ID.
func (f *filter) excludes(id eventID) bool {
	older := f.older.Load()
	if older == nil || f.off {
		return false
	}
	h := f.hash(id)
	if older.Has(h) {
		return false
	}
	for _, b := range f.newer {
		if b.Has(h) {
			return false
		}
	}
	return true
}

// newBloom returns a Bloom filter for n hashes. It reports one in a hundred other
// hashes as contained.
func newBloom(n int) *z.Bloom { return z.NewBloomFilter(float64(max(n, 1)), 0.01) }

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
		older.Add(l.filter.hash(e.id))
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
