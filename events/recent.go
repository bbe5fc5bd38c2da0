package events

import (
	"bytes"
	"sync"
)

// recents are the payloads that this process has encoded last. Under train all
// stages of a run are in one process: the next stage, the trainers and the log
// read a payload shortly after it is published, and each would decompress and
// hash it again. That takes 5 to 10 % of the CPU time of BenchmarkPipeline.
var recents recentPayloads

type recentPayloads struct {
	mu    sync.Mutex
	limit int // bytes; 0 keeps nothing
	bytes int
	byID  map[string]*recentPayload
	queue []*recentPayload // oldest first
}

// recentPayload is a payload before and after compression. It does not change.
type recentPayload struct {
	id        string
	encoding  string
	data, raw []byte
	once      sync.Once
	hash      string
}

func (p *recentPayload) bytes() int { return len(p.data) + len(p.raw) }

// Hash returns the payload's hash, as Event.Hash does.
func (p *recentPayload) Hash() string {
	p.once.Do(func() { p.hash = hashOf(p.raw) })
	return p.hash
}

// Remember keeps up to limit bytes of payloads that this process encodes, before
// and after compression. Decoding a message of the same ID and the same bytes
// then skips decompressing and hashing; its result is the same. It lasts until
// forget is called. The limits of several calls add up.
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

// trim removes the oldest payloads until the rest is within the limit.
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

// keep remembers the payload of a message that was encoded from raw.
func (r *recentPayloads) keep(m *Message, raw []byte) {
	p := &recentPayload{id: m.ID, encoding: m.Encoding, data: m.Data}
	r.mu.Lock()
	wanted := len(m.Data)+len(raw) <= r.limit/8 // no payload may displace all others
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
	if p == nil || p.encoding != m.Encoding || !bytes.Equal(p.data, m.Data) {
		return nil
	}
	return p
}
