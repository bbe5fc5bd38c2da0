package events

import (
	"bytes"
	"sync"
)

// recents are the payloads that were encoded in this process last. Where all
// stages of a run are in one process, as under train, what one of them
// publishes is read by the next one, by trainers and by the log a moment later:
// each would decompress and hash it again.
var recents recentPayloads

type recentPayloads struct {
	mu    sync.Mutex
	limit int // bytes; 0 keeps nothing
	bytes int
	byID  map[string]*recentPayload
	queue []*recentPayload // oldest first
}

// recentPayload is a payload before and after compression. Nobody changes it.
type recentPayload struct {
	id        string
	data, raw []byte
	once      sync.Once
	hash      string
}

func (p *recentPayload) bytes() int { return len(p.data) + len(p.raw) }

// Hash returns what Event.Hash does.
func (p *recentPayload) Hash() string {
	p.once.Do(func() { p.hash = hashOf(p.raw) })
	return p.hash
}

// Remember keeps limit bytes of the payloads that this process encodes, as they
// are before and after compression, so that they need not be decompressed and
// hashed again where they are decoded in this process. What is kept counts for a
// message of the same ID and the same bytes, and nothing is decoded differently
// for it. It lasts until forget is called. The limits of several calls add up.
func Remember(limit int) (forget func()) {
	recents.grow(limit)
	return sync.OnceFunc(func() { recents.grow(-limit) })
}

func (r *recentPayloads) grow(by int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limit += by
	r.trim()
}

// trim forgets the oldest until the rest is within the limit.
func (r *recentPayloads) trim() {
	for r.bytes > r.limit {
		oldest := r.queue[0]
		r.queue[0], r.queue = nil, r.queue[1:]
		r.bytes -= oldest.bytes()
		if r.byID[oldest.id] == oldest {
			delete(r.byID, oldest.id)
		}
	}
}

// keep remembers the payload of a message that was just made of raw.
func (r *recentPayloads) keep(m *Message, raw []byte) {
	p := &recentPayload{id: m.ID, data: m.Data}
	r.mu.Lock()
	wanted := len(m.Data)+len(raw) <= r.limit/8 // not one in place of all others
	r.mu.Unlock()
	if !wanted {
		return
	}
	p.raw = bytes.Clone(raw)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID == nil {
		r.byID = make(map[string]*recentPayload)
	}
	r.byID[p.id] = p
	r.queue = append(r.queue, p)
	r.bytes += p.bytes()
	r.trim()
}

// of returns the payload of a message, or nil.
func (r *recentPayloads) of(m *Message) *recentPayload {
	r.mu.Lock()
	p := r.byID[m.ID]
	r.mu.Unlock()
	if p == nil || !bytes.Equal(p.data, m.Data) {
		return nil
	}
	return p
}
