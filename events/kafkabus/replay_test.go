package kafkabus

import (
	"fmt"
	"testing"
	"time"

	"codea1/events"

	"github.com/twmb/franz-go/pkg/kfake"
)

// runNotes returns the notes of a run: of each group five events that a set of
// consumers claims and finishes, and one that nobody consumes.
func runNotes(steps, groups int) []note {
	chain := []events.Type{
		events.TypeProblemPosed, events.TypeCodeSampled, events.TypeTestsSampled, events.TypeCodeExecuted, events.TypeGroupRewarded, events.TypePolicyUpdated,
	}
	var list []note
	for i, t := range chain[:5] {
		list = append(list, note{Verb: verbJoin, Set: fmt.Sprint("set", i), Types: []events.Type{t}})
	}
	for step := range steps {
		for group := range groups {
			for i, t := range chain {
				at := int64(len(list))
				list = append(list, note{
					Verb: verbEvent, ID: fmt.Sprintf("%032x", at), Type: t, Group: fmt.Sprintf("s%06d-q%04d", step+1, group),
					Partition: group % 4, Offset: at, Bytes: 20_000,
				})
				if i == 5 {
					continue
				}
				work := note{Verb: verbClaim, Set: fmt.Sprint("set", i), Member: "0123456789abcdef", MaxInFlight: 64, Items: []item{{At: at}}}
				list = append(list, work)
				work.Verb, work.MaxInFlight, work.Items = verbFinish, 0, []item{{At: at, Turn: 1}}
				list = append(list, work)
			}
		}
	}
	return list
}

// BenchmarkReplay connects to a run of 180 steps of 16 groups: what every
// process that joins it late reads before it can do anything.
func BenchmarkReplay(b *testing.B) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		b.Fatal(err)
	}
	defer fake.Close()
	connect := func() (*Bus, *journal) {
		bus, err := Connect(b.Context(), Config{Brokers: fake.ListenAddrs()})
		if err != nil {
			b.Fatal(err)
		}
		j, err := bus.journal(b.Context(), "r1")
		if err != nil {
			b.Fatal(err)
		}
		return bus, j
	}
	notes := runNotes(180, 16)
	bus, j := connect()
	var end int64
	for i := 0; i < len(notes); i += noteBatch {
		if end, err = j.store(b.Context(), notes[i:min(i+noteBatch, len(notes))]); err != nil {
			b.Fatal(err)
		}
	}
	if err := bus.Close(); err != nil {
		b.Fatal(err)
	}
	var replaying time.Duration
	for b.Loop() {
		began := time.Now()
		bus, j := connect()
		if err := j.wait(b.Context(), j.ctx, end); err != nil {
			b.Fatal(err)
		}
		replaying += time.Since(began)
		j.look(func(l *ledger) {
			for name, s := range l.sets {
				if lag := s.lag(); lag != (events.Lag{}) {
					b.Fatalf("set %s lags by %+v", name, lag)
				}
			}
		})
		if err := bus.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(notes)), "notes")
	b.ReportMetric(float64(len(notes))*float64(b.N)/replaying.Seconds(), "notes/s")
}
