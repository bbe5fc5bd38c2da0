package eventlog

import "sync"

// known is an event that is in the log: its sequence number and payload.
type known struct {
	seq     uint64
	payload Hash
}

// recent holds the last events by ID: those after the last chunk of the index
// (newer), and those of that chunk (older). A batch is admitted in a view of the
// store that may be older than the chunk, so it needs both. It is safe for
// concurrent use.
type recent struct {
	mu           sync.RWMutex
	newer, older map[eventID]known
}

func newRecent() *recent { return &recent{newer: make(map[eventID]known)} }

func (r *recent) find(id eventID) (k known, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if k, ok = r.newer[id]; !ok {
		k, ok = r.older[id]
	}
	return k, ok
}

func (r *recent) add(id eventID, k known) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.newer[id] = k
}

// addAll adds the admitted candidates.
func (r *recent) addAll(part []candidate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range part {
		if c := &part[i]; c.outcome == admitted {
			r.newer[c.id] = known{c.seq, c.payload}
		}
	}
}

// list returns the events after the last chunk, in no particular order.
func (r *recent) list() []indexEntry {
	r.mu.RLock()
	defer r.mu.RUnlock()
	list := make([]indexEntry, 0, len(r.newer))
	for id, k := range r.newer {
		list = append(list, indexEntry{id, k.seq})
	}
	return list
}

// turn makes the newer events the older ones, and forgets the older ones.
func (r *recent) turn() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.newer, r.older = make(map[eventID]known, len(r.newer)), r.newer
}
