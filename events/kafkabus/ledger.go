package kafkabus

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sort"
	"time"

	"codea1/events"
)

// ledger is the fold of the changes of a control topic. It is pure: the same
// changes give the same events, holders and deliveries in every process. Only
// the age of a claim depends on the clock of the reader.
type ledger struct {
	end        int64 // offset of the next change
	events     []storedEvent
	byKey      map[eventKey]int // index in events, of the last one
	partitions map[topicPartition]*runPartition
	sets       map[string]*workerSet
}

type eventID [16]byte

// eventKey is 128 bits of the SHA-256 of a type and a group. A run has one
// event for each.
type eventKey [16]byte

func keyOf(t events.Type, group string) eventKey {
	sum := sha256.Sum256([]byte(string(t) + "/" + group))
	return eventKey(sum[:16])
}

// storedEvent is an event of the run. The order of these is the order of the
// run.
type storedEvent struct {
	at        int64 // control offset of its change
	id        eventID
	typ       events.Type
	partition int
	offset    int64
	bytes     int
	replaces  int // 1 more than the index of the replaced one; 0 for none
}

// location returns the location of the payload.
func (e *storedEvent) location() location {
	return location{topicPartition{typ: e.typ, partition: e.partition}, e.offset}
}

// workerSet is the state of a worker set. Events are named by their index.
type workerSet struct {
	types    map[events.Type]bool
	claims   map[int]*claim         // events that were claimed and are not finished
	finished []uint64               // one bit for each event
	dead     map[int]roundChange    // events that are finished as dead letters
	rounds   map[int]roundChange    // redelivered events
	copies   map[int]int64          // retry topic offsets of unfinished events
	copied   int64                  // offset after the last named copy
	passed   map[topicPartition]int // first events of a runPartition that are finished or copied, as far as known
	fresh    int                    // all events before this index are claimed, finished or of another type
	wanted   int                    // number of events of the types
	done     int                    // number of those that are finished
	held     int                    // number of those that are held now
}

// claim is the state of an event that was claimed and is not finished.
type claim struct {
	holder string    // empty if given back
	number int       // of the last delivery
	turn   int       // number of changes
	since  time.Time // time at which the last change was read
	due    time.Time // not to be claimed before this time
}

// roundChange refers to the change that ended a round of an event with a dead
// letter, or that redelivered the dead letter of a round.
type roundChange struct {
	round int
	at    int64 // control offset of the change
}

func newLedger() *ledger {
	return &ledger{byKey: make(map[eventKey]int), partitions: make(map[topicPartition]*runPartition), sets: make(map[string]*workerSet)}
}

func parseID(s string) (eventID, error) {
	var id eventID
	if n, err := hex.Decode(id[:], []byte(s)[:min(len(s), 2*len(id))]); err != nil || n != len(id) || len(s) != 2*len(id) {
		return id, fmt.Errorf("%w: control change: event id", events.ErrMalformed)
	}
	return id, nil
}

// apply folds the change at a control offset. now is the time at which it was
// read.
func (l *ledger) apply(n *change, at int64, now time.Time) {
	if n.Kind == kindEvent {
		l.add(n, at)
		return
	}
	s := l.sets[n.Set]
	if n.Kind == kindJoin {
		if s == nil {
			s = &workerSet{
				claims: make(map[int]*claim), dead: make(map[int]roundChange), rounds: make(map[int]roundChange),
				copies: make(map[int]int64), passed: make(map[topicPartition]int),
			}
			l.sets[n.Set] = s
		}
		s.join(n.Types, l.events)
		return
	}
	if s == nil {
		return
	}
	for _, it := range n.Items {
		i, ok := l.index(it.At)
		if !ok || !s.types[l.events[i].typ] || s.isFinished(i) != (n.Kind == kindRedeliver) {
			continue
		}
		switch n.Kind {
		case kindClaim:
			s.take(i, it.Turn, n, now)
		case kindDeadLetter:
			s.giveUp(i, n.Round, at)
		case kindRedeliver:
			if s.redeliver(i, n.Round, at) && !s.copy(i, n) {
				l.reopen(s, i)
			}
		default:
			s.answer(i, it.Turn, n, now)
		}
	}
}

func (l *ledger) add(n *change, at int64) {
	id, err := parseID(n.ID)
	if err != nil {
		return
	}
	r := l.runPartition(topicPartition{typ: n.Type, partition: n.Partition})
	r.end = max(r.end, n.Offset+1)
	key := keyOf(n.Type, n.Group)
	e := storedEvent{at: at, id: id, typ: n.Type, partition: n.Partition, offset: n.Offset, bytes: n.Bytes}
	if last, ok := l.byKey[key]; ok {
		if n.Replaces == nil || *n.Replaces != l.events[last].at || l.depth(last) >= maxReplaced {
			return // a repetition or a contradiction: the first event counts
		}
		e.replaces = last + 1
	}
	l.byKey[key] = len(l.events)
	l.events = append(l.events, e)
	l.enter(r, len(l.events)-1)
	for _, s := range l.sets {
		if s.types[n.Type] {
			s.wanted++
		}
	}
}

// maxReplaced bounds the payloads that are no event of one type and group.
const maxReplaced = 32

// depth returns the number of payloads that event i replaces.
func (l *ledger) depth(i int) int {
	n := 0
	for e := &l.events[i]; e.replaces > 0; n++ {
		e = &l.events[e.replaces-1]
	}
	return n
}

// claimsOn returns the changes that name a type and group, the oldest first. The
// first one with an event as its payload counts.
func (l *ledger) claimsOn(t events.Type, group string) []storedEvent {
	last, ok := l.byKey[keyOf(t, group)]
	if !ok {
		return nil
	}
	return append(l.replacedBy(&l.events[last]), l.events[last])
}

// replacedBy returns the changes that a change replaces, the oldest first.
func (l *ledger) replacedBy(e *storedEvent) []storedEvent {
	var list []storedEvent
	for e.replaces > 0 {
		e = &l.events[e.replaces-1]
		list = append(list, *e)
	}
	slices.Reverse(list)
	return list
}

// from returns the index of the first event at or after a control offset.
func (l *ledger) from(at int64) int {
	return sort.Search(len(l.events), func(i int) bool { return l.events[i].at >= at })
}

func (l *ledger) index(at int64) (int, bool) {
	i := l.from(at)
	return i, i < len(l.events) && l.events[i].at == at
}

// join sets the types. If members disagree, the last types count and the
// numbers are computed again.
func (s *workerSet) join(types []events.Type, list []storedEvent) {
	asked := make(map[events.Type]bool, len(types))
	for _, t := range types {
		asked[t] = true
	}
	s.types = asked
	s.fresh, s.wanted, s.done, s.held = 0, 0, 0, 0
	for i := range list {
		if !asked[list[i].typ] {
			continue
		}
		s.wanted++
		if s.isFinished(i) {
			s.done++
		} else if c := s.claims[i]; c != nil && c.holder != "" {
			s.held++
		}
	}
}

func (s *workerSet) isFinished(i int) bool {
	return i/64 < len(s.finished) && s.finished[i/64]&(1<<(i%64)) != 0
}

// take gives event i to a member if the event has not changed since the member
// looked.
func (s *workerSet) take(i, turn int, n *change, now time.Time) {
	c := s.claims[i]
	if c == nil {
		c = new(claim)
	}
	if c.turn != turn || c.holder == "" && s.held >= n.MaxInFlight {
		return
	}
	if c.holder == "" {
		s.held++
	}
	c.holder = n.Member
	c.number++
	c.turn++
	c.since = now
	s.claims[i] = c
}

// answer folds an answer to event i. Every member can finish it; the other
// answers count only from its holder.
func (s *workerSet) answer(i, number int, n *change, now time.Time) {
	if n.Kind == kindFinish {
		s.finish(i)
		return
	}
	c := s.claims[i]
	if c == nil || c.holder != n.Member || c.number != number {
		return
	}
	c.turn++
	c.since = now
	switch n.Kind {
	case kindRelease:
		c.number--
		fallthrough
	case kindRetry:
		c.holder = ""
		c.due = now.Add(n.Wait)
		s.held--
		s.copy(i, n)
	}
}

// copy records that event i has a copy in the retry topic, if the change names
// one.
func (s *workerSet) copy(i int, n *change) bool {
	if n.Copy == nil {
		return false
	}
	s.copies[i] = *n.Copy
	s.copied = max(s.copied, *n.Copy+1)
	return true
}

func (s *workerSet) finish(i int) {
	if c := s.claims[i]; c != nil && c.holder != "" {
		s.held--
	}
	delete(s.claims, i)
	delete(s.copies, i)
	for i/64 >= len(s.finished) {
		s.finished = append(s.finished, 0)
	}
	s.finished[i/64] |= 1 << (i % 64)
	s.done++
}

// giveUp finishes event i as a dead letter, once a round. Every member can do
// so.
func (s *workerSet) giveUp(i, round int, at int64) {
	if round == s.round(i) {
		s.finish(i)
		s.dead[i] = roundChange{round, at}
	}
}

// redeliver makes a dead letter an event that was never claimed. It reports
// whether it did.
func (s *workerSet) redeliver(i, round int, at int64) bool {
	if s.dead[i].round != round || round == 0 {
		return false
	}
	delete(s.dead, i)
	s.rounds[i] = roundChange{round, at}
	s.finished[i/64] &^= 1 << (i % 64)
	s.done--
	s.fresh = min(s.fresh, i)
	return true
}

// round returns the round of the next dead letter of event i.
func (s *workerSet) round(i int) int { return s.rounds[i].round + 1 }

// lag counts the unfinished events.
func (s *workerSet) lag() events.Lag {
	return events.Lag{Pending: int64(s.wanted - s.done - s.held), InFlight: int64(s.held)}
}

// free returns up to most events that a member may claim now, oldest first,
// without the first skip never-claimed ones if others remain. next is the end
// of the next claim or delay, or zero.
func (l *ledger) free(s *workerSet, most, skip, maxInFlight int, ackWait time.Duration, now time.Time) (items []item, next time.Time) {
	later := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	room := maxInFlight - s.held
	var again []int
	for i, c := range s.claims {
		if !s.types[l.events[i].typ] {
			continue
		}
		switch ends := c.since.Add(ackWait); {
		case c.holder != "" && ends.After(now):
			later(ends)
		case c.holder == "" && c.due.After(now):
			later(c.due)
		default:
			again = append(again, i)
		}
	}
	slices.Sort(again)
	for _, i := range again {
		c := s.claims[i]
		if len(items) == most || c.holder == "" && room == 0 {
			continue
		}
		if c.holder == "" {
			room--
		}
		items = append(items, item{At: l.events[i].at, Turn: c.turn})
	}
	untouched := func(i int) bool {
		return s.types[l.events[i].typ] && s.claims[i] == nil && !s.isFinished(i)
	}
	for s.fresh < len(l.events) && !untouched(s.fresh) {
		s.fresh++
	}
	want := min(most-len(items), room)
	var young []item
	for i := s.fresh; i < len(l.events) && want > 0 && len(young) < want+skip; i++ {
		if untouched(i) {
			young = append(young, item{At: l.events[i].at})
		}
	}
	if want > 0 && len(young) > want {
		young = young[len(young)-want:]
	}
	items = append(items, young...)
	slices.SortFunc(items, func(a, b item) int { return cmp.Compare(a.At, b.At) })
	return items, next
}

// holding is an event that a member holds.
type holding struct {
	storedEvent
	round  int
	number int
	copy   *location // nil without a copy
}

// locations returns the locations of the payload, the preferred one first.
func (h *holding) locations() []location {
	if h.copy != nil {
		return []location{*h.copy, h.location()}
	}
	return []location{h.location()}
}

// heldBy returns the events that a member holds, oldest first.
func (l *ledger) heldBy(name, member string) []holding {
	s := l.sets[name]
	var list []holding
	for i, c := range s.claims {
		if c.holder != member {
			continue
		}
		h := holding{storedEvent: l.events[i], round: s.round(i), number: c.number}
		if offset, ok := s.copies[i]; ok {
			h.copy = &location{topicPartition{retries: name}, offset}
		}
		list = append(list, h)
	}
	slices.SortFunc(list, func(a, b holding) int { return cmp.Compare(a.at, b.at) })
	return list
}
