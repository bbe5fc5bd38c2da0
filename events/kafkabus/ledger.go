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

// ledger is what the notes of a journal add up to. It is a pure fold: the same
// notes give the same events, holders and attempts in every process; only when
// a lease is old is judged by the clock of who asks.
type ledger struct {
	end    int64 // offset of the next note
	events []entry
	byKey  map[eventKey]int // index of entry
	rows   map[place]*row
	sets   map[string]*set
}

type eventID [16]byte

// eventKey stands for a type and a group: 128 bits of SHA-256. A run has one
// event for each.
type eventKey [16]byte

func keyOf(t events.Type, group string) eventKey {
	sum := sha256.Sum256([]byte(string(t) + "/" + group))
	return eventKey(sum[:16])
}

// entry is an event of the run, in the run's order.
type entry struct {
	at        int64 // journal offset of its note
	id        eventID
	typ       events.Type
	partition int
	offset    int64
	bytes     int
}

// spot returns where the payload lies.
func (e *entry) spot() spot { return spot{place{typ: e.typ, partition: e.partition}, e.offset} }

// set is a set of competing consumers.
type set struct {
	types    map[events.Type]bool
	claims   map[int]*claim // messages claimed before and not finished, by index of entry
	finished []uint64       // a bit for each entry
	dead     map[int]letter // finished as dead letters, by index of entry
	rounds   map[int]again  // redelivered, by index of entry
	copies   map[int]int64  // offsets in the retry topic, of entries that are not finished, by index
	copied   int64          // offset after the last one there that a note tells of
	passed   map[place]int  // entries of a row that are finished or copied without a gap, as far as was looked
	fresh    int            // no entry before it is free and was never claimed
	wanted   int            // entries of types
	done     int            // of them finished
	held     int            // of them held now
}

// claim is the state of a message that was claimed and is not finished.
type claim struct {
	holder  string // empty when given back
	attempt int
	turn    int       // changes so far
	since   time.Time // when the last change was seen
	due     time.Time // not to be claimed before
}

// letter is a dead letter: what it says is in its note.
type letter struct {
	round int
	at    int64 // journal offset of its note
}

// again is the redelivery of a dead letter.
type again struct {
	round int   // of the letter
	at    int64 // journal offset of the redelivery's note
}

func newLedger() *ledger {
	return &ledger{byKey: make(map[eventKey]int), rows: make(map[place]*row), sets: make(map[string]*set)}
}

func parseID(s string) (eventID, error) {
	var id eventID
	if n, err := hex.Decode(id[:], []byte(s)[:min(len(s), 2*len(id))]); err != nil || n != len(id) || len(s) != 2*len(id) {
		return id, fmt.Errorf("%w: note: event id", events.ErrMalformed)
	}
	return id, nil
}

// apply takes the note at a journal offset, seen now.
func (l *ledger) apply(n *note, at int64, now time.Time) {
	if n.Verb == verbEvent {
		l.add(n, at)
		return
	}
	s := l.sets[n.Set]
	if n.Verb == verbJoin {
		if s == nil {
			s = &set{
				claims: make(map[int]*claim), dead: make(map[int]letter), rounds: make(map[int]again),
				copies: make(map[int]int64), passed: make(map[place]int),
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
		if !ok || !s.types[l.events[i].typ] || s.isFinished(i) != (n.Verb == verbAgain) {
			continue
		}
		switch n.Verb {
		case verbClaim:
			s.take(i, it.Turn, n, now)
		case verbDead:
			s.bury(i, n.Round, at)
		case verbAgain:
			if s.revive(i, n.Round, at) && !s.copy(i, n) {
				l.reopen(s, i)
			}
		default:
			s.answer(i, it.Turn, n, now)
		}
	}
}

func (l *ledger) add(n *note, at int64) {
	id, err := parseID(n.ID)
	if err != nil {
		return
	}
	r := l.row(place{typ: n.Type, partition: n.Partition})
	r.end = max(r.end, n.Offset+1)
	key := keyOf(n.Type, n.Group)
	if _, ok := l.byKey[key]; ok {
		return // the same once more, or a contradiction: the first stands
	}
	l.byKey[key] = len(l.events)
	l.events = append(l.events, entry{at: at, id: id, typ: n.Type, partition: n.Partition, offset: n.Offset, bytes: n.Bytes})
	l.enter(r, len(l.events)-1)
	for _, s := range l.sets {
		if s.types[n.Type] {
			s.wanted++
		}
	}
}

// check reports whether an event stands in the journal; it returns ErrLineage
// when another one of its type and group does.
func (l *ledger) check(m *events.Message) (bool, error) {
	i, ok := l.byKey[keyOf(m.Type, m.Group)]
	if !ok {
		return false, nil
	}
	if id, err := parseID(m.ID); err != nil || id != l.events[i].id {
		return false, fmt.Errorf("%s %s: %w: stored %x, refused %s", m.Type, m.Group, events.ErrLineage, l.events[i].id, m.ID)
	}
	return true, nil
}

// from returns the index of the first entry at or after a journal offset.
func (l *ledger) from(at int64) int {
	return sort.Search(len(l.events), func(i int) bool { return l.events[i].at >= at })
}

func (l *ledger) index(at int64) (int, bool) {
	i := l.from(at)
	return i, i < len(l.events) && l.events[i].at == at
}

// join sets the types. Members of one set use the same; should they not, the
// last one's stand and everything is counted again.
func (s *set) join(types []events.Type, entries []entry) {
	asked := make(map[events.Type]bool, len(types))
	for _, t := range types {
		asked[t] = true
	}
	s.types = asked
	s.fresh, s.wanted, s.done, s.held = 0, 0, 0, 0
	for i := range entries {
		if !asked[entries[i].typ] {
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

func (s *set) isFinished(i int) bool {
	return i/64 < len(s.finished) && s.finished[i/64]&(1<<(i%64)) != 0
}

// take gives message i to the note's member when nothing has changed since the
// member looked.
func (s *set) take(i, turn int, n *note, now time.Time) {
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
	c.attempt++
	c.turn++
	c.since = now
	s.claims[i] = c
}

// answer changes message i. Whoever has it, finished is finished; everything
// else is for its holder to say.
func (s *set) answer(i, attempt int, n *note, now time.Time) {
	if n.Verb == verbFinish {
		s.finish(i)
		return
	}
	c := s.claims[i]
	if c == nil || c.holder != n.Member || c.attempt != attempt {
		return
	}
	c.turn++
	c.since = now
	switch n.Verb {
	case verbRelease:
		c.attempt--
		fallthrough
	case verbRetry:
		c.holder = ""
		c.due = now.Add(n.Wait)
		s.held--
		s.copy(i, n)
	}
}

// copy has message i wait in the retry topic, when the note names a copy there.
func (s *set) copy(i int, n *note) bool {
	if n.Copy == nil {
		return false
	}
	s.copies[i] = *n.Copy
	s.copied = max(s.copied, *n.Copy+1)
	return true
}

func (s *set) finish(i int) {
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

// bury finishes message i as a dead letter, once a round, whoever has it.
func (s *set) bury(i, round int, at int64) {
	if round == s.round(i) {
		s.finish(i)
		s.dead[i] = letter{round, at}
	}
}

// revive makes message i one that was never claimed, once a dead letter; it
// reports whether it did.
func (s *set) revive(i, round int, at int64) bool {
	if s.dead[i].round != round || round == 0 {
		return false
	}
	delete(s.dead, i)
	s.rounds[i] = again{round, at}
	s.finished[i/64] &^= 1 << (i % 64)
	s.done--
	s.fresh = min(s.fresh, i)
	return true
}

// round is that of the next dead letter about message i.
func (s *set) round(i int) int { return s.rounds[i].round + 1 }

// lag counts what is not finished.
func (s *set) lag() events.Lag {
	return events.Lag{Pending: int64(s.wanted - s.done - s.held), InFlight: int64(s.held)}
}

// free returns up to most messages that a member may claim now, oldest first,
// leaving out the first skip never-claimed ones where others remain; and when
// the next lease or delay ends, if one does.
func (l *ledger) free(s *set, most, skip, maxInFlight int, ackWait time.Duration, now time.Time) (items []item, next time.Time) {
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

// holding is a message that a member holds, its round, its attempt and where it
// was copied to.
type holding struct {
	entry
	round   int
	attempt int
	copy    *spot // nil for none
}

// spots returns where the payload lies, the place to look first.
func (h *holding) spots() []spot {
	if h.copy != nil {
		return []spot{*h.copy, h.spot()}
	}
	return []spot{h.spot()}
}

// heldBy returns what a member holds, oldest first.
func (l *ledger) heldBy(name, member string) []holding {
	s := l.sets[name]
	var list []holding
	for i, c := range s.claims {
		if c.holder != member {
			continue
		}
		h := holding{entry: l.events[i], round: s.round(i), attempt: c.attempt}
		if offset, ok := s.copies[i]; ok {
			h.copy = &spot{place{retries: name}, offset}
		}
		list = append(list, h)
	}
	slices.SortFunc(list, func(a, b holding) int { return cmp.Compare(a.at, b.at) })
	return list
}
