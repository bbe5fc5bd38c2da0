package natsbus_test

import (
	"fmt"
	"testing"
	"time"

	"codea1/events"
	"codea1/events/eventstest"
	"codea1/events/natsbus"
)

// BenchmarkStoppedTap publishes events as fast as it can to two embedded servers in turn: one
// with a tap that reads nothing, as a stopped process does, and one without. Until the server
// ends the connection of the tap, after 10 seconds or 64 MiB, it holds a publisher back for 2 ms
// at a time, so that a slow tap loses nothing.
func BenchmarkStoppedTap(b *testing.B) {
	const batch = 64
	var spent [2]time.Duration
	var buses [2]*natsbus.Bus
	for i := range buses {
		s, err := natsbus.StartServer(natsbus.ServerConfig{StoreDir: b.TempDir(), Run: "r1", SyncInterval: time.Minute})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(s.Shutdown)
		if buses[i], err = natsbus.Connect(b.Context(), natsbus.Config{Server: s}); err != nil {
			b.Fatal(err)
		}
		if i == 1 {
			silentTap(b, s)
			b.Cleanup(func() { _ = buses[0].Close(); _ = buses[1].Close() })
		}
	}
	n := 0
	for b.Loop() {
		var messages []events.Message
		for range batch {
			e := eventstest.CodeSampled(eventstest.Posed("r1", 1+n/eventstest.Groups, n%eventstest.Groups))
			e.Payload.(*events.CodeSampled).Answers[0].Text = fmt.Sprintf("%01000d", n)
			messages = append(messages, eventstest.Encode(e))
			n++
		}
		for i := range buses {
			which := (i + n/batch) % 2 // each is the first one as often
			timed(&spent[which], func() {
				if err := buses[which].Publish(b.Context(), messages...); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(n)/spent[0].Seconds(), "msg/s")
	b.ReportMetric(float64(n)/spent[1].Seconds(), "msg/s-beside-the-tap")
	b.ReportMetric(100*spent[0].Seconds()/spent[1].Seconds(), "%-of-the-rate")
}
