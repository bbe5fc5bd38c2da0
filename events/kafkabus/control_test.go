package kafkabus

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"codea1/events"
)

// runChanges returns the changes of a run: for each group five events that a
// worker set claims and finishes, and one that no worker set consumes.
func runChanges(steps, groups int) []change {
	chain := []events.Type{
		events.TypeProblemPosed, events.TypeCodeSampled, events.TypeTestsSampled, events.TypeCodeExecuted, events.TypeGroupRewarded, events.TypePolicyUpdated,
	}
	var list []change
	for i, t := range chain[:5] {
		list = append(list, change{Kind: kindJoin, Set: fmt.Sprint("set", i), Types: []events.Type{t}})
	}
	for step := range steps {
		for group := range groups {
			for i, t := range chain {
				at := int64(len(list))
				list = append(list, change{
					Kind: kindEvent, ID: fmt.Sprintf("%032x", at), Type: t, Group: fmt.Sprintf("s%06d-q%04d", step+1, group),
					Partition: group % 4, Offset: at, Bytes: 20_000,
				})
				if i == 5 {
					continue
				}
				work := change{Kind: kindClaim, Set: fmt.Sprint("set", i), Member: "0123456789abcdef", MaxInFlight: 64, Items: []item{{At: at}}}
				list = append(list, work)
				work.Kind, work.MaxInFlight, work.Items = kindFinish, 0, []item{{At: at, Turn: 1}}
				list = append(list, work)
			}
		}
	}
	return list
}

// BenchmarkReplay connects to a run of 180 steps of 16 groups. Every process
// that joins the run late must read it first.
func BenchmarkReplay(b *testing.B) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		b.Fatal(err)
	}
	defer fake.Close()
	connect := func() (*Bus, *control) {
		bus, err := Connect(b.Context(), Config{Brokers: fake.ListenAddrs()})
		if err != nil {
			b.Fatal(err)
		}
		ctl, err := bus.control(b.Context(), "r1")
		if err != nil {
			b.Fatal(err)
		}
		return bus, ctl
	}
	changes := runChanges(180, 16)
	bus, ctl := connect()
	var end int64
	for i := 0; i < len(changes); i += changeBatch {
		if end, err = ctl.store(b.Context(), changes[i:min(i+changeBatch, len(changes))]); err != nil {
			b.Fatal(err)
		}
	}
	if err := bus.Close(); err != nil {
		b.Fatal(err)
	}
	var replaying time.Duration
	for b.Loop() {
		began := time.Now()
		bus, ctl := connect()
		if err := ctl.wait(b.Context(), ctl.ctx, end); err != nil {
			b.Fatal(err)
		}
		replaying += time.Since(began)
		ctl.look(func(l *ledger) {
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
	b.ReportMetric(float64(len(changes)), "changes")
	b.ReportMetric(float64(len(changes))*float64(b.N)/replaying.Seconds(), "changes/s")
}
