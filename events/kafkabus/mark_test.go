package kafkabus

import (
	"fmt"
	"testing"
	"time"

	"codea1/events"

	"pgregory.net/rapid"
)

// Whatever the notes are, and however seldom one looks, a mark is the least
// offset of what a set has not finished, or the end.
func TestMark(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLedger()
		ends := make(map[place]int64)
		for at, n := range drawNotes(t) {
			if n.Verb == verbEvent {
				label := fmt.Sprint(at)
				n.Partition = rapid.IntRange(0, 1).Draw(t, "partition"+label)
				n.Offset = rapid.Int64Range(0, 20).Draw(t, "offset"+label)
				in := place{typ: n.Type, partition: n.Partition}
				ends[in] = max(ends[in], n.Offset+1)
			}
			l.apply(&n, int64(at), time.Unix(1000, 0))
			if rapid.Bool().Draw(t, fmt.Sprint("look", at)) {
				continue
			}
			for name, s := range l.sets {
				for typ := range s.types {
					for partition := range 2 {
						in := place{typ: typ, partition: partition}
						want, waits := ends[in], false
						for i, e := range l.events {
							if _, copied := s.copies[i]; !copied && e.spot().place == in && !s.isFinished(i) && (!waits || e.offset < want) {
								want, waits = e.offset, true
							}
						}
						if got, waiting := l.mark(s, in); got != want || waiting != waits {
							t.Fatalf("after note %d, set %s, %v: mark %d, %v, want %d, %v", at, name, in, got, waiting, want, waits)
						}
					}
				}
			}
		}
	})
}

// A dead letter that is redelivered takes the mark back, also of who has looked
// past it.
func TestMarkGoesBack(t *testing.T) {
	l := newLedger()
	in := place{typ: events.TypeProblemPosed}
	first := []item{{At: 1}}
	for at, n := range []note{
		{Verb: verbJoin, Set: "work", Types: []events.Type{in.typ}},
		{Verb: verbEvent, ID: fmt.Sprintf("%032x", 1), Type: in.typ, Group: "g1", Offset: 5},
		{Verb: verbEvent, ID: fmt.Sprintf("%032x", 2), Type: in.typ, Group: "g2", Offset: 6},
		{Verb: verbFinish, Set: "work", Items: []item{{At: 2}}},
		{Verb: verbDead, Set: "work", Round: 1, Items: first},
		{Verb: verbAgain, Set: "work", Round: 1, Items: first},
		{Verb: verbFinish, Set: "work", Items: first},
	} {
		l.apply(&n, int64(at), time.Unix(1000, 0))
		want := []int64{0, 5, 5, 5, 7, 5, 7}[at]
		if got, _ := l.mark(l.sets["work"], in); got != want {
			t.Errorf("after note %d: mark %d, want %d", at, got, want)
		}
	}
}

// What waits in the retry topic waits there alone: the mark of its partition
// passes it, that of the retry topic stands at it until it is finished.
func TestMarkPassesCopies(t *testing.T) {
	l := newLedger()
	offset := func(n int64) *int64 { return &n }
	first, attempt := []item{{At: 1}}, func(n int) []item { return []item{{At: 1, Turn: n}} }
	type marks struct {
		Payloads, Retries int64
		Waiting           bool // in the retry topic
	}
	for at, c := range []struct {
		note
		want marks
	}{
		{note{Verb: verbJoin, Types: []events.Type{events.TypeProblemPosed}}, marks{}},
		{note{Verb: verbEvent, ID: fmt.Sprintf("%032x", 1), Type: events.TypeProblemPosed, Group: "g1", Offset: 5}, marks{Payloads: 5}},
		{note{Verb: verbEvent, ID: fmt.Sprintf("%032x", 2), Type: events.TypeProblemPosed, Group: "g2", Offset: 6}, marks{Payloads: 5}},
		{note{Verb: verbClaim, Member: "a", Items: attempt(0)}, marks{Payloads: 5}},
		{note{Verb: verbRetry, Member: "b", Items: attempt(1), Copy: offset(3)}, marks{Payloads: 5}}, // has no say
		{note{Verb: verbRetry, Member: "a", Items: attempt(1), Copy: offset(4)}, marks{6, 4, true}},
		{note{Verb: verbClaim, Member: "a", Items: attempt(2)}, marks{6, 4, true}},
		{note{Verb: verbRetry, Member: "a", Items: attempt(2)}, marks{6, 4, true}},
		{note{Verb: verbFinish, Items: []item{{At: 2}}}, marks{7, 4, true}},
		{note{Verb: verbDead, Round: 1, Items: first}, marks{7, 5, false}},
		{note{Verb: verbAgain, Round: 1, Items: first, Copy: offset(8)}, marks{7, 8, true}},
		{note{Verb: verbDead, Round: 2, Items: first}, marks{7, 9, false}},
		{note{Verb: verbAgain, Round: 2, Items: first}, marks{5, 9, false}}, // without a copy it is where it was
	} {
		c.Set, c.MaxInFlight = "work", 10
		l.apply(&c.note, int64(at), time.Unix(1000, 0))
		var got marks
		got.Payloads, _ = l.mark(l.sets["work"], place{typ: events.TypeProblemPosed})
		got.Retries, got.Waiting = l.mark(l.sets["work"], place{retries: "work"})
		if got != c.want {
			t.Errorf("after note %d: %+v, want %+v", at, got, c.want)
		}
	}
}

func TestReplaces(t *testing.T) {
	for name, c := range map[string]struct {
		mark, old committed
		waiting   bool
		want      bool
	}{
		"First":            {mark: committed{7, 10}, old: nothing, want: true},
		"FirstWaiting":     {mark: committed{0, 10}, old: nothing, waiting: true, want: true},
		"NothingKnown":     {mark: committed{0, 10}, old: nothing},
		"Onward":           {mark: committed{7, 10}, old: committed{5, 9}, waiting: true, want: true},
		"Same":             {mark: committed{5, 10}, old: committed{5, 9}, waiting: true},
		"OlderView":        {mark: committed{7, 10}, old: committed{5, 11}, waiting: true},
		"Redelivered":      {mark: committed{5, 10}, old: committed{7, 9}, waiting: true, want: true},
		"LaterEndSeen":     {mark: committed{5, 10}, old: committed{7, 9}},
		"SetBySomebody":    {mark: committed{5, 10}, old: committed{9, -1}, waiting: true, want: true},
		"SameViewLaterEnd": {mark: committed{9, 10}, old: committed{7, 10}, want: true},
	} {
		if got := c.mark.replaces(c.old, c.waiting); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What lay in a partition one round ago and has no note by now belongs to
// others; what came since may be about to get one. A commit that names more than
// there is was made before a topic was deleted.
func TestDue(t *testing.T) {
	in := place{typ: events.TypeProblemPosed}
	ready := func(notes ...note) *committer {
		l := newLedger()
		for at, n := range append([]note{{Verb: verbJoin, Set: "work", Types: []events.Type{in.typ}}}, notes...) {
			l.apply(&n, int64(at), time.Unix(1000, 0))
			l.end = int64(at) + 1
		}
		j := &journal{tail: &tail{changed: make(chan struct{})}, ledger: l}
		return &committer{journal: j}
	}
	event := note{Verb: verbEvent, ID: fmt.Sprintf("%032x", 1), Type: in.typ, Group: "g", Offset: 3}
	finish := note{Verb: verbFinish, Set: "work", Items: []item{{At: 1}}}
	for name, c := range map[string]struct {
		notes       []note
		old         committed
		before, end int64 // of the partition
		journal     int64 // its end
		want        int64 // -1 for none
	}{
		"Empty":           {old: nothing, want: -1},
		"OfOthers":        {old: nothing, before: 8, end: 9, want: 8},
		"Waiting":         {notes: []note{event}, old: committed{2, 1}, before: 8, end: 9, journal: 2, want: 3},
		"Finished":        {notes: []note{event, finish}, old: committed{3, 2}, before: 4, end: 9, journal: 3, want: 4},
		"FinishedAtFirst": {notes: []note{event, finish}, old: committed{3, 2}, end: 9, journal: 3, want: 4},
		"OthersBehind":    {notes: []note{event, finish}, old: committed{3, 2}, before: 8, end: 9, journal: 3, want: 8},
		"NewerCommit":     {notes: []note{event}, old: committed{4, 5}, before: 8, end: 9, journal: 5, want: -1},
		"JournalDeleted":  {notes: []note{event}, old: committed{4, 50}, before: 8, end: 9, journal: 5, want: 3},
		"TopicDeleted":    {notes: []note{event, finish}, old: committed{40, 3}, before: 4, end: 9, journal: 3, want: 4},
		"ForgedOffset":    {notes: []note{{Verb: verbEvent, ID: event.ID, Type: in.typ, Group: "g", Offset: 1 << 40}, finish}, old: nothing, end: 9, journal: 3, want: 9},
	} {
		m := ready(c.notes...)
		m.ends = map[place]int64{in: c.end}
		before := make(map[place]int64)
		if c.before > 0 {
			before[in] = c.before
		}
		list := m.due("work", map[place]committed{in: c.old}, before, c.journal)
		got := int64(-1)
		if mark, ok := list[in]; ok {
			got = mark.offset
		}
		if got != c.want {
			t.Errorf("%s: commits %d, want %d", name, got, c.want)
		}
	}
}
