package eventlog

import (
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"codea1/events"
	"codea1/replay/eventlog/internal/badgerdir"
	"codea1/replay/internal/replaytest"
)

// benchBatch is the number of events in a transaction.
const benchBatch = 100

// benchMessages returns different events with about size bytes of data.
func benchMessages(b *testing.B, size int) []events.Message {
	messages := make([]events.Message, 512)
	for i := range messages {
		messages[i] = replaytest.Encode(b, events.New(replaytest.Run, "x", "x", replaytest.Time, &events.StageHeartbeat{Stage: replaytest.Noise(i, size)}))
	}
	return messages
}

// renamed gives event n of a benchmark its own group and ID.
func renamed(m events.Message, n int) events.Message {
	m.Group = fmt.Sprint(n)
	m.ID = RootID(m.Run, m.Group, m.Type)
	return m
}

var benchSizes = []struct {
	name string
	text int
}{{"1KB", 900}, {"10KB", 11_500}}

// BenchmarkAppend is compared with BenchmarkBare: the same bytes in the same
// store without index, chain, payload hashes, deduplication and book. Both work
// as a Recorder does: the next transaction is prepared while one is committed,
// and each transaction syncs the log's files once.
func BenchmarkAppend(b *testing.B) {
	for _, size := range benchSizes {
		b.Run(size.name, func(b *testing.B) { benchAppend(b, size.text, Options{}) })
	}
}

// BenchmarkFilter appends events of 1 KB with and without the filter in front of
// the index.
func BenchmarkFilter(b *testing.B) {
	b.Run("with", func(b *testing.B) { benchAppend(b, benchSizes[0].text, Options{}) })
	b.Run("without", func(b *testing.B) { benchAppend(b, benchSizes[0].text, Options{noFilter: true}) })
}

func benchAppend(b *testing.B, text int, options Options) {
	l := openLog(b, b.TempDir(), options)
	messages := benchMessages(b, text)
	b.SetBytes(int64(len(messages[0].Data)))
	// One batch is committed while the other is filled.
	batches := [2][]Incoming{make([]Incoming, 0, benchBatch), make([]Incoming, 0, benchBatch)}
	var pending *Pending
	wait := func() {
		if pending == nil {
			return
		}
		if _, err := pending.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	n := 0
	for b.Loop() {
		batch := &batches[n/benchBatch%2]
		*batch = append(*batch, Incoming{Message: renamed(messages[n%len(messages)], n)})
		if n++; n%benchBatch != 0 {
			continue
		}
		next, err := l.Begin(b.Context(), *batch)
		if err != nil {
			b.Fatal(err)
		}
		wait()
		pending = next
		other := &batches[n/benchBatch%2]
		*other = (*other)[:0]
	}
	wait()
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkBare(b *testing.B) {
	for _, size := range benchSizes {
		b.Run(size.name, func(b *testing.B) {
			db, err := badger.Open(badgerdir.Tuned(b.TempDir(), badgerdir.Options{Logger: slog.New(slog.DiscardHandler)}))
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = db.Close() })
			messages := benchMessages(b, size.text)
			b.SetBytes(int64(len(messages[0].Data)))
			full := make(chan []events.Message)
			committed := make(chan error, 1)
			go func() {
				committed <- commitBare(db, full)
			}()
			n := 0
			var batch []events.Message
			for b.Loop() {
				batch = append(batch, renamed(messages[n%len(messages)], n))
				if n++; n%benchBatch == 0 {
					full <- batch
					batch = make([]events.Message, 0, benchBatch)
				}
			}
			close(full)
			if err := <-committed; err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// commitBare commits batches, numbered from 0.
func commitBare(db *badger.DB, full <-chan []events.Message) (err error) {
	seq := uint64(0)
	for batch := range full {
		if err != nil {
			continue
		}
		err = db.Update(func(txn *badger.Txn) error {
			for _, m := range batch {
				if err := txn.Set(eventKey(seq), m.Data); err != nil {
					return err
				}
				seq++
			}
			return nil
		})
	}
	return err
}

// benchEvents returns the number of events in the logs of BenchmarkRead and
// BenchmarkOpen: CODEA1_BENCH_EVENTS, or few.
func benchEvents(b *testing.B) int {
	text := os.Getenv("CODEA1_BENCH_EVENTS")
	if text == "" {
		return 30_000
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		b.Fatalf("CODEA1_BENCH_EVENTS=%q is no number of events", text)
	}
	return n
}

// benchLog fills a log with groups of three events, and trains a step of every
// thousand groups.
func benchLog(b *testing.B, dir string) (events int) {
	l := openLog(b, dir, Options{})
	n := benchEvents(b)
	batch := make([]Incoming, 0, 320)
	s := replaytest.NewStory(b)
	for slot := 0; events < n; slot++ {
		batch = append(batch, at(events, replaytest.Group(b, slot)...)...)
		events += 3
		if slot%1000 == 999 {
			s.Messages = nil
			step := replaytest.Plan(slot).Step
			s.Update("code", step, nil)
			s.Update("test", step, nil)
			batch = append(batch, at(events, s.Messages...)...)
			events += 2
		}
		if len(batch) >= 300 {
			mustAppend(b, l, batch)
			batch = batch[:0]
		}
	}
	mustAppend(b, l, batch)
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	return events
}

// BenchmarkOpen opens a closed log. It reports the memory of the process with the
// open log: without and with mapped files.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	n := benchLog(b, dir)
	for _, options := range []Options{{}, {ReadOnly: true}} {
		name := "write"
		if options.ReadOnly {
			name = "read"
		}
		b.Run(name, func(b *testing.B) {
			var own, all int
			for b.Loop() {
				b.StopTimer()
				debug.FreeOSMemory()
				b.StartTimer()
				l, err := Open(dir, options)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				own, all = max(own, memory(b, "RssAnon")), max(all, memory(b, "VmRSS"))
				if err := l.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(n), "events")
			b.ReportMetric(float64(own)/1000, "own-MB")
			b.ReportMetric(float64(all)/1000, "resident-MB")
		})
	}
}

// memory returns a line of /proc/self/status, in kilobytes; 0 if the file does not
// exist.
func memory(b *testing.B, key string) (kilobytes int) {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(raw), key+":")
	if _, err := fmt.Sscan(rest, &kilobytes); err != nil {
		b.Fatal(err)
	}
	return kilobytes
}

func BenchmarkRead(b *testing.B) {
	dir := b.TempDir()
	n := benchLog(b, dir)
	l := openLog(b, dir, Options{ReadOnly: true})
	report := func(b *testing.B) {
		b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
	}
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			err := l.db.View(func(txn *badger.Txn) error {
				it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceEvents}})
				defer it.Close()
				for it.Rewind(); it.Valid(); it.Next() {
					if err := it.Item().Value(func([]byte) error { return nil }); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		}
		report(b)
	})
	b.Run("scan", func(b *testing.B) {
		for b.Loop() {
			for _, err := range l.Read(b.Context(), ReadOptions{}) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
		report(b)
	})
	b.Run("scan-rewarded", func(b *testing.B) {
		for b.Loop() {
			for _, err := range l.Read(b.Context(), ReadOptions{Types: []events.Type{events.TypeGroupRewarded}}) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
		report(b)
	})
	b.Run("rebuild", func(b *testing.B) {
		for b.Loop() {
			if _, err := l.BookAt(b.Context(), uint64(n)); err != nil {
				b.Fatal(err)
			}
		}
		report(b)
	})
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			if _, err := l.Verify(b.Context(), nil); err != nil {
				b.Fatal(err)
			}
		}
		report(b)
	})
}

// BenchmarkLookup looks up IDs that the log has, and IDs that it does not have.
func BenchmarkLookup(b *testing.B) {
	dir := b.TempDir()
	n := benchLog(b, dir)
	l := openLog(b, dir, Options{})
	ids := make([]eventID, 0, 1024)
	for r, err := range l.Read(b.Context(), ReadOptions{}) {
		if err != nil {
			b.Fatal(err)
		}
		if len(ids) < cap(ids) && int(r.Seq)*cap(ids) > len(ids)*n {
			ids = append(ids, parseID(r.Message.ID))
		}
	}
	for _, present := range []bool{true, false} {
		b.Run(map[bool]string{true: "present", false: "absent"}[present], func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				id := ids[i%len(ids)]
				if !present {
					id[15] ^= 1
				}
				if seq, err := l.lookup(id); seq != 0 != present || err != nil {
					b.Fatalf("%s is found at %d, %v", id, seq, err)
				}
			}
		})
	}
}
