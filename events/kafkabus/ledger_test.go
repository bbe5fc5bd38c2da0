package kafkabus

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"codea1/events"
)

// drawChanges draws changes that a few members of two worker sets may write:
// late, repeated and with wrong turns.
func drawChanges(t *rapid.T) []change {
	types := []events.Type{events.TypeProblemPosed, events.TypeCodeSampled}
	var list []change
	for i, set := range []string{"one", "two"} {
		list = append(list, change{Kind: kindJoin, Set: set, Types: types[:i+1]})
	}
	for i := range rapid.IntRange(1, 60).Draw(t, "changes") {
		label := fmt.Sprint(i)
		if rapid.IntRange(0, 3).Draw(t, "kind"+label) == 0 {
			group := rapid.IntRange(0, 9).Draw(t, "group"+label)
			typ := rapid.SampledFrom(types).Draw(t, "type"+label)
			list = append(list, change{Kind: kindEvent, ID: fmt.Sprintf("%032x", group), Type: typ, Group: fmt.Sprint(group)})
			continue
		}
		n := change{
			Kind:        rapid.SampledFrom([]changeKind{kindClaim, kindClaim, kindExtend, kindFinish, kindRetry, kindRelease, kindDeadLetter, kindRedeliver}).Draw(t, "kind"+label),
			Set:         rapid.SampledFrom([]string{"one", "two", "none"}).Draw(t, "set"+label),
			Member:      rapid.SampledFrom([]string{"a", "b"}).Draw(t, "member"+label),
			MaxInFlight: 3,
			Round:       rapid.IntRange(0, 2).Draw(t, "round"+label),
		}
		for k := range rapid.IntRange(1, 3).Draw(t, "items"+label) {
			label := fmt.Sprint(label, "-", k)
			n.Items = append(n.Items, item{
				At:   rapid.Int64Range(-1, int64(len(list))).Draw(t, "at"+label),
				Turn: rapid.IntRange(0, 3).Draw(t, "turn"+label),
			})
		}
		if len(n.Items) == 1 && (n.Kind == kindRetry || n.Kind == kindRedeliver) {
			n.Copy = rapid.Ptr(rapid.Int64Range(0, 20), true).Draw(t, "copy"+label)
		}
		list = append(list, n)
	}
	return list
}

// For all changes, the counts match the events, the limit of the worker set
// holds, and a finished event becomes unfinished only by a redelivery.
func TestLedgerCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLedger()
		now := time.Unix(1000, 0)
		finished := make(map[string]map[int]bool)
		for at, n := range drawChanges(t) {
			now = now.Add(time.Second)
			l.apply(&n, int64(at), now)
			for name, s := range l.sets {
				var lag events.Lag
				if finished[name] == nil {
					finished[name] = make(map[int]bool)
				}
				for i := range l.events {
					if !s.types[l.events[i].typ] {
						continue
					}
					if finished[name][i] && !s.isFinished(i) {
						if n.Kind != kindRedeliver || s.rounds[i].at != int64(at) {
							t.Fatalf("message %d of %s is unfinished again", i, name)
						}
						delete(finished[name], i)
					}
					if _, dead := s.dead[i]; dead && !s.isFinished(i) {
						t.Fatalf("message %d of %s is dead and not finished", i, name)
					}
					switch c := s.claims[i]; {
					case s.isFinished(i):
						finished[name][i] = true
						if c != nil {
							t.Fatalf("message %d of %s is finished and claimed", i, name)
						}
					case c != nil && c.holder != "":
						lag.InFlight++
					default:
						lag.Pending++
					}
				}
				if d := cmp.Diff(lag, s.lag()); d != "" {
					t.Fatalf("after change %d, worker set %s (-messages +counts):\n%s", at, name, d)
				}
				if lag.InFlight > 3 {
					t.Fatalf("set %s holds %d messages", name, lag.InFlight)
				}
			}
		}
	})
}

// A lone member gets every event that free offers.
func TestFreeIsGranted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLedger()
		now := time.Unix(1000, 0)
		var end int64
		for at, n := range drawChanges(t) {
			l.apply(&n, int64(at), now)
			end = int64(at) + 1
		}
		now = now.Add(rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "later"))
		s := l.sets["one"]
		most := rapid.IntRange(1, 5).Draw(t, "most")
		items, next := l.free(s, most, rapid.IntRange(0, 5).Draw(t, "skip"), 3, time.Minute, now)
		if len(items) > most {
			t.Fatalf("%d messages offered, %d asked for", len(items), most)
		}
		if !next.IsZero() && !next.After(now) {
			t.Fatalf("the next end %v is not after %v", next, now)
		}
		// If no event is offered, none is due.
		if lag := s.lag(); len(items) == 0 && next.IsZero() && lag.Pending > 0 && lag.InFlight < 3 {
			t.Fatalf("nothing to wait for with lag %+v", lag)
		}
		claim := change{Kind: kindClaim, Set: "one", Member: "c", MaxInFlight: 3, Items: items}
		l.apply(&claim, end, now)
		if held := l.heldBy("one", "c"); len(held) != len(items) {
			t.Fatalf("%d of %d claims were granted", len(held), len(items))
		}
		// A change that is stored twice has an effect once.
		before := fmt.Sprint(s.lag(), l.heldBy("one", "c"))
		l.apply(&claim, end+1, now)
		if after := fmt.Sprint(s.lag(), l.heldBy("one", "c")); after != before {
			t.Fatalf("the same claim again: %s became %s", before, after)
		}
	})
}

// Two members see the same claim expire; an extension that is stored before
// their claims keeps it.
func TestTakeOver(t *testing.T) {
	l := newLedger()
	now := time.Unix(1000, 0)
	var at int64
	answer := func(n change) {
		n.Set, n.MaxInFlight = "work", 10
		l.apply(&n, at, now)
		at++
	}
	answer(change{Kind: kindJoin, Types: []events.Type{events.TypeProblemPosed}})
	l.apply(&change{Kind: kindEvent, ID: fmt.Sprintf("%032x", 1), Type: events.TypeProblemPosed, Group: "g"}, at, now)
	message := at
	at++
	s := l.sets["work"]
	holder := func(want string, number int) {
		t.Helper()
		if c := s.claims[0]; c.holder != want || c.number != number {
			t.Errorf("held by %q in delivery %d, want %q in delivery %d", c.holder, c.number, want, number)
		}
	}
	answer(change{Kind: kindClaim, Member: "a", Items: []item{{message, 0}}})
	holder("a", 1)
	if items, next := l.free(s, 1, 0, 10, time.Minute, now.Add(59*time.Second)); len(items) > 0 || !next.Equal(now.Add(time.Minute)) {
		t.Errorf("free %v, next %v", items, next)
	}
	now = now.Add(time.Minute)
	seen, _ := l.free(s, 1, 0, 10, time.Minute, now)
	answer(change{Kind: kindExtend, Member: "a", Items: []item{{message, 1}}})
	answer(change{Kind: kindClaim, Member: "b", Items: seen})
	holder("a", 1)
	now = now.Add(time.Minute)
	seen, _ = l.free(s, 1, 0, 10, time.Minute, now)
	answer(change{Kind: kindClaim, Member: "b", Items: seen})
	answer(change{Kind: kindClaim, Member: "c", Items: seen})
	holder("b", 2)
	answer(change{Kind: kindRetry, Member: "a", Items: []item{{message, 1}}})
	holder("b", 2)
	answer(change{Kind: kindFinish, Member: "a", Items: []item{{message, 1}}})
	if d := cmp.Diff(events.Lag{}, s.lag()); d != "" {
		t.Error(d)
	}
}

// An event becomes a dead letter once a round and each dead letter is
// redelivered once, also if changes are repeated or late.
func TestDeadLetterRounds(t *testing.T) {
	l := newLedger()
	var at int64
	answer := func(n change) int64 {
		n.Set, n.MaxInFlight = "work", 10
		l.apply(&n, at, time.Unix(1000, 0))
		at++
		return at - 1
	}
	answer(change{Kind: kindJoin, Types: []events.Type{events.TypeProblemPosed}})
	answer(change{Kind: kindEvent, ID: fmt.Sprintf("%032x", 1), Type: events.TypeProblemPosed, Group: "g"})
	message := []item{{At: 1}}
	s := l.sets["work"]
	state := func(want events.Lag, letters int) {
		t.Helper()
		if d := cmp.Diff(want, s.lag()); d != "" || len(s.dead) != letters {
			t.Errorf("%d letters, want %d; lag (-want +got):\n%s", len(s.dead), letters, d)
		}
	}
	for round := 1; round <= 3; round++ {
		answer(change{Kind: kindRedeliver, Round: round, Items: message}) // there is no dead letter yet
		answer(change{Kind: kindClaim, Member: "a", Items: []item{{At: 1, Turn: 0}}})
		state(events.Lag{InFlight: 1}, 0)
		if held := l.heldBy("work", "a"); len(held) != 1 || held[0].number != 1 || held[0].round != round {
			t.Errorf("round %d: held %+v", round, held)
		}
		answer(change{Kind: kindDeadLetter, Member: "a", Round: round - 1, Items: message}) // late, of the round before
		state(events.Lag{InFlight: 1}, 0)
		letter := answer(change{Kind: kindDeadLetter, Member: "a", Round: round, Items: message})
		answer(change{Kind: kindDeadLetter, Member: "a", Round: round, Items: message})
		answer(change{Kind: kindRedeliver, Round: round + 1, Items: message})
		state(events.Lag{}, 1)
		if got := l.deadLetters(); len(got) != 1 || got[0].at != letter || got[0].round != round {
			t.Errorf("round %d: letters %+v", round, got)
		}
		answer(change{Kind: kindRedeliver, Round: round, Items: message})
		answer(change{Kind: kindRedeliver, Round: round, Items: message})
		state(events.Lag{Pending: 1}, 0)
	}
}

// Of the changes that name a type and group the first counts, and after it the
// first that replaces the last one.
func TestChangesOnOneName(t *testing.T) {
	l := newLedger()
	replacing := func(at int64) *int64 { return &at }
	for at, replaces := range []*int64{nil, nil, replacing(1), replacing(0), replacing(0), nil, replacing(3)} {
		l.apply(&change{Kind: kindEvent, ID: fmt.Sprintf("%032d", at), Type: events.TypeProblemPosed, Group: "g", Replaces: replaces}, int64(at), time.Time{})
	}
	var got []int64
	for _, e := range l.claimsOn(events.TypeProblemPosed, "g") {
		got = append(got, e.at)
	}
	if !slices.Equal(got, []int64{0, 3, 6}) || len(l.events) != 3 {
		t.Errorf("the changes at %v count, of %d", got, len(l.events))
	}
	for range 2 * maxReplaced {
		last := l.events[len(l.events)-1].at
		l.apply(&change{Kind: kindEvent, ID: fmt.Sprintf("%032d", 1), Type: events.TypeProblemPosed, Group: "g", Replaces: &last}, last+1, time.Time{})
	}
	if n := len(l.claimsOn(events.TypeProblemPosed, "g")); n != maxReplaced+1 {
		t.Errorf("%d changes count, limit %d", n, maxReplaced+1)
	}
}

func FuzzParseNote(f *testing.F) {
	for _, n := range []change{
		{Kind: kindEvent, ID: fmt.Sprintf("%032x", 7), Type: events.TypeCodeSampled, Group: "s000001-q0001", Partition: 3, Offset: 99, Bytes: 1000},
		{Kind: kindJoin, Set: "execution", Types: events.Types()},
		{Kind: kindClaim, Set: "execution", Member: "a", MaxInFlight: 8, Items: []item{{1, 0}, {2, 5}}},
		{Kind: kindRetry, Set: "execution", Member: "a", Wait: time.Second, Items: []item{{1, 0}}},
		{Kind: kindRetry, Set: "execution", Member: "a", Wait: time.Second, Items: []item{{1, 0}}, Copy: new(int64)},
		{Kind: kindDeadLetter, Set: "execution", Member: "a", Round: 1, Reason: "no", Time: time.Unix(1000, 0), Items: []item{{1, 5}}},
		{Kind: kindRedeliver, Set: "execution", Round: 1, Items: []item{{1, 0}}},
		{Kind: "sing"},
	} {
		data, err := json.Marshal(&n)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"kind":"event","id":"` + "\u00e9" + `"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := parseChange(data)
		if err != nil {
			return
		}
		l := newLedger()
		l.apply(&change{Kind: kindJoin, Set: n.Set, Types: events.Types()}, 0, time.Time{})
		l.apply(&n, 1, time.Time{})
		if n.Kind == kindEvent && len(l.events) != 1 {
			t.Error("an event change made no event")
		}
	})
}
