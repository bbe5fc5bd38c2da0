package kafkabus

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"codea1/events"
)

// For all changes, the offset to commit is that of the first unfinished event,
// or the end, however rarely it is asked for.
func TestOffsetToCommit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLedger()
		ends := make(map[topicPartition]int64)
		for at, n := range drawChanges(t) {
			if n.Kind == kindEvent {
				label := fmt.Sprint(at)
				n.Partition = rapid.IntRange(0, 1).Draw(t, "partition"+label)
				n.Offset = rapid.Int64Range(0, 20).Draw(t, "offset"+label)
				in := topicPartition{typ: n.Type, partition: n.Partition}
				ends[in] = max(ends[in], n.Offset+1)
			}
			l.apply(&n, int64(at), time.Unix(1000, 0))
			if rapid.Bool().Draw(t, fmt.Sprint("look", at)) {
				continue
			}
			for name, s := range l.sets {
				for typ := range s.types {
					for partition := range 2 {
						in := topicPartition{typ: typ, partition: partition}
						want, waits := ends[in], false
						for i, e := range l.events {
							if _, copied := s.copies[i]; !copied && e.location().topicPartition == in && !s.isFinished(i) && (!waits || e.offset < want) {
								want, waits = e.offset, true
							}
						}
						if got, waiting := l.offsetToCommit(s, in); got != want || waiting != waits {
							t.Fatalf("after change %d, worker set %s, %v: offset %d, %v, want %d, %v", at, name, in, got, waiting, want, waits)
						}
					}
				}
			}
		}
	})
}

// A redelivered dead letter moves the offset back, also after the offset has
// passed it.
func TestOffsetGoesBack(t *testing.T) {
	l := newLedger()
	in := topicPartition{typ: events.TypeProblemPosed}
	first := []item{{At: 1}}
	for at, n := range []change{
		{Kind: kindJoin, Set: "work", Types: []events.Type{in.typ}},
		{Kind: kindEvent, ID: fmt.Sprintf("%032x", 1), Type: in.typ, Group: "g1", Offset: 5},
		{Kind: kindEvent, ID: fmt.Sprintf("%032x", 2), Type: in.typ, Group: "g2", Offset: 6},
		{Kind: kindFinish, Set: "work", Items: []item{{At: 2}}},
		{Kind: kindDeadLetter, Set: "work", Round: 1, Items: first},
		{Kind: kindRedeliver, Set: "work", Round: 1, Items: first},
		{Kind: kindFinish, Set: "work", Items: first},
	} {
		l.apply(&n, int64(at), time.Unix(1000, 0))
		want := []int64{0, 5, 5, 5, 7, 5, 7}[at]
		if got, _ := l.offsetToCommit(l.sets["work"], in); got != want {
			t.Errorf("after change %d: offset %d, want %d", at, got, want)
		}
	}
}

// The offset of a partition passes an event with a copy; the offset of the
// retry topic stays at the copy until the event is finished.
func TestOffsetPassesCopies(t *testing.T) {
	l := newLedger()
	offset := func(n int64) *int64 { return &n }
	first, number := []item{{At: 1}}, func(n int) []item { return []item{{At: 1, Turn: n}} }
	type committer struct {
		Payloads, Retries int64
		Waiting           bool // in the retry topic
	}
	for at, c := range []struct {
		change
		want committer
	}{
		{change{Kind: kindJoin, Types: []events.Type{events.TypeProblemPosed}}, committer{}},
		{change{Kind: kindEvent, ID: fmt.Sprintf("%032x", 1), Type: events.TypeProblemPosed, Group: "g1", Offset: 5}, committer{Payloads: 5}},
		{change{Kind: kindEvent, ID: fmt.Sprintf("%032x", 2), Type: events.TypeProblemPosed, Group: "g2", Offset: 6}, committer{Payloads: 5}},
		{change{Kind: kindClaim, Member: "a", Items: number(0)}, committer{Payloads: 5}},
		{change{Kind: kindRetry, Member: "b", Items: number(1), Copy: offset(3)}, committer{Payloads: 5}}, // not from the holder
		{change{Kind: kindRetry, Member: "a", Items: number(1), Copy: offset(4)}, committer{6, 4, true}},
		{change{Kind: kindClaim, Member: "a", Items: number(2)}, committer{6, 4, true}},
		{change{Kind: kindRetry, Member: "a", Items: number(2)}, committer{6, 4, true}},
		{change{Kind: kindFinish, Items: []item{{At: 2}}}, committer{7, 4, true}},
		{change{Kind: kindDeadLetter, Round: 1, Items: first}, committer{7, 5, false}},
		{change{Kind: kindRedeliver, Round: 1, Items: first, Copy: offset(8)}, committer{7, 8, true}},
		{change{Kind: kindDeadLetter, Round: 2, Items: first}, committer{7, 9, false}},
		{change{Kind: kindRedeliver, Round: 2, Items: first}, committer{5, 9, false}}, // without a copy it waits in its partition
	} {
		c.Set, c.MaxInFlight = "work", 10
		l.apply(&c.change, int64(at), time.Unix(1000, 0))
		var got committer
		got.Payloads, _ = l.offsetToCommit(l.sets["work"], topicPartition{typ: events.TypeProblemPosed})
		got.Retries, got.Waiting = l.offsetToCommit(l.sets["work"], topicPartition{retries: "work"})
		if got != c.want {
			t.Errorf("after change %d: %+v, want %+v", at, got, c.want)
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

// A payload that was there one commit ago and has no change belongs to another
// run; a newer one may still get a change. A commit past the end was made
// before a topic was deleted.
func TestDue(t *testing.T) {
	in := topicPartition{typ: events.TypeProblemPosed}
	ready := func(changes ...change) *committer {
		l := newLedger()
		for at, n := range append([]change{{Kind: kindJoin, Set: "work", Types: []events.Type{in.typ}}}, changes...) {
			l.apply(&n, int64(at), time.Unix(1000, 0))
			l.end = int64(at) + 1
		}
		ctl := &control{tail: &tail{changed: make(chan struct{})}, ledger: l}
		return &committer{control: ctl}
	}
	event := change{Kind: kindEvent, ID: fmt.Sprintf("%032x", 1), Type: in.typ, Group: "g", Offset: 3}
	finish := change{Kind: kindFinish, Set: "work", Items: []item{{At: 1}}}
	for name, c := range map[string]struct {
		changes     []change
		old         committed
		before, end int64 // of the partition
		control     int64 // its end
		want        int64 // -1 for none
	}{
		"Empty":               {old: nothing, want: -1},
		"OfOthers":            {old: nothing, before: 8, end: 9, want: 8},
		"Waiting":             {changes: []change{event}, old: committed{2, 1}, before: 8, end: 9, control: 2, want: 3},
		"Finished":            {changes: []change{event, finish}, old: committed{3, 2}, before: 4, end: 9, control: 3, want: 4},
		"FinishedAtFirst":     {changes: []change{event, finish}, old: committed{3, 2}, end: 9, control: 3, want: 4},
		"OthersBehind":        {changes: []change{event, finish}, old: committed{3, 2}, before: 8, end: 9, control: 3, want: 8},
		"NewerCommit":         {changes: []change{event}, old: committed{4, 5}, before: 8, end: 9, control: 5, want: -1},
		"ControlTopicDeleted": {changes: []change{event}, old: committed{4, 50}, before: 8, end: 9, control: 5, want: 3},
		"TopicDeleted":        {changes: []change{event, finish}, old: committed{40, 3}, before: 4, end: 9, control: 3, want: 4},
		"ForgedOffset":        {changes: []change{{Kind: kindEvent, ID: event.ID, Type: in.typ, Group: "g", Offset: 1 << 40}, finish}, old: nothing, end: 9, control: 3, want: 9},
	} {
		m := ready(c.changes...)
		m.ends = map[topicPartition]int64{in: c.end}
		before := make(map[topicPartition]int64)
		if c.before > 0 {
			before[in] = c.before
		}
		list := m.due("work", map[topicPartition]committed{in: c.old}, before, c.control)
		got := int64(-1)
		if mark, ok := list[in]; ok {
			got = mark.offset
		}
		if got != c.want {
			t.Errorf("%s: commits %d, want %d", name, got, c.want)
		}
	}
}
