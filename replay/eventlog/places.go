package eventlog

import "sync"

// place is where the event with an ID is, and the payload that stands there.
type place struct {
	seq     uint64
	payload Hash
}

// places are those of the events that came last. It is safe for concurrent use.
type places struct {
	mu           sync.RWMutex
	newer, older map[eventID]place
}

func newPlaces() *places { return &places{newer: make(map[eventID]place)} }

func (p *places) find(id eventID) (at place, ok bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if at, ok = p.newer[id]; !ok {
		at, ok = p.older[id]
	}
	return at, ok
}

func (p *places) add(id eventID, at place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.newer[id] = at
}

func (p *places) addAll(part []candidate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range part {
		if c := &part[i]; c.outcome == admitted {
			p.newer[c.id] = place{c.seq, c.payload}
		}
	}
}

// list returns the newer half, in no particular order.
func (p *places) list() []indexEntry {
	p.mu.RLock()
	defer p.mu.RUnlock()
	list := make([]indexEntry, 0, len(p.newer))
	for id, at := range p.newer {
		list = append(list, indexEntry{id, at.seq})
	}
	return list
}

// turn forgets the older half. The newer one is kept a while for those who look
// at the store as it was a moment ago.
func (p *places) turn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.newer, p.older = make(map[eventID]place, len(p.newer)), p.newer
}
