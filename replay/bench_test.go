package replay

import (
	"fmt"
	"log/slog"
	"testing"

	"codea1/events"
	"github.com/dgraph-io/badger/v4"
)

// benchBatch is how many events go into a transaction.
const benchBatch = 100

// benchMessages returns events whose data is about size bytes and different
// for every n.
func benchMessages(b *testing.B, size int) []events.Message {
	messages := make([]events.Message, 512)
	for i := range messages {
		p := posed(i, "What is f?")
		encode(b, p)
		messages[i] = encode(b, sampled(p, noise(i, size)))
	}
	return messages
}

// renamed gives event n of a benchmark an ID of its own.
func renamed(m events.Message, n int) events.Message {
	m.ID = fmt.Sprintf("%032x", uint64(n)*0x9e3779b97f4a7c15)
	return m
}

var benchSizes = []struct {
	name string
	text int
}{{"1KB", 900}, {"10KB", 11_500}}

// BenchmarkAppend is to be read beside BenchmarkBare: the same bytes in the
// same store without index, chain, payload hashes, dedupe and book.
func BenchmarkAppend(b *testing.B) {
	for _, size := range benchSizes {
		b.Run(size.name, func(b *testing.B) {
			l := openLog(b, b.TempDir(), Options{})
			messages := benchMessages(b, size.text)
			b.SetBytes(int64(len(messages[0].Data)))
			batch := make([]Entry, 0, benchBatch)
			n := 0
			for b.Loop() {
				batch = append(batch, Entry{Message: renamed(messages[n%len(messages)], n)})
				n++
				if len(batch) == cap(batch) {
					mustAppend(b, l, batch)
					batch = batch[:0]
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

func BenchmarkBare(b *testing.B) {
	for _, size := range benchSizes {
		b.Run(size.name, func(b *testing.B) {
			db, err := badger.Open(storeOptions(b.TempDir(), &Options{Logger: slog.New(slog.DiscardHandler)}))
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = db.Close() })
			messages := benchMessages(b, size.text)
			b.SetBytes(int64(len(messages[0].Data)))
			txn := db.NewTransaction(true)
			n := 0
			for b.Loop() {
				m := renamed(messages[n%len(messages)], n)
				if err := txn.Set(eventKey(uint64(n)), m.Data); err != nil {
					b.Fatal(err)
				}
				if n++; n%benchBatch == 0 {
					if err := txn.Commit(); err != nil {
						b.Fatal(err)
					}
					txn = db.NewTransaction(true)
				}
			}
			txn.Discard()
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// benchLog is a log of whole groups; one event in three is a reward.
func benchLog(b *testing.B) (l *Log, events int) {
	l = openLog(b, b.TempDir(), Options{})
	const groups = 10_000
	batch := make([]Entry, 0, 300)
	for slot := range groups {
		batch = append(batch, at(3*slot, group(b, slot)...)...)
		if len(batch) == cap(batch) {
			mustAppend(b, l, batch)
			batch = batch[:0]
		}
	}
	mustAppend(b, l, batch)
	return l, 3 * groups
}

func BenchmarkRead(b *testing.B) {
	l, n := benchLog(b)
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
			for _, err := range l.Scan(b.Context(), ScanOptions{}) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
		report(b)
	})
	b.Run("scan-rewarded", func(b *testing.B) {
		for b.Loop() {
			for _, err := range l.Scan(b.Context(), ScanOptions{Types: []events.Type{events.TypeGroupRewarded}}) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
		report(b)
	})
	b.Run("rebuild", func(b *testing.B) {
		for b.Loop() {
			if _, err := RebuildBook(b.Context(), l); err != nil {
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

// rescoreLog is a log of groups of the paper's size, M = N = K = 8, each with
// its verdicts and its reward.
func rescoreLog(b *testing.B, groups int) *Log {
	l := openLog(b, b.TempDir(), Options{})
	s := newStory(b)
	for slot := range groups {
		plan := events.Plan{Purpose: events.PurposeTrain, Step: 1, Slot: slot, Groups: groups, Answers: 8, Suites: 8, Tests: 8, Temperature: 1}
		executed := &events.CodeExecuted{Plan: plan, ProblemID: fmt.Sprintf("p%d", slot%50), Answers: make([]events.ExecutedAnswer, 8)}
		for m := range executed.Answers {
			a := &executed.Answers[m]
			a.Loads = true
			for n := range 8 {
				suite := events.ExecutedSuite{Chars: 400}
				for k := range 8 {
					call := fmt.Sprintf("solve([%d, %d, %d], %d)", slot, m, n, k)
					suite.Tests = append(suite.Tests, events.ExecutedTest{
						Source: "assert " + call + " == 1", Status: events.StatusKept, Call: call, Stated: "1", Expected: "1", Verdict: verdictOf((m+n+k)%3, events.VerdictFail),
					})
				}
				a.Suites = append(a.Suites, suite)
			}
		}
		e := s.root(plan.GroupID(), executed)
		s.then(e, passShare(executed, 0.5))
	}
	mustAppend(b, l, at(0, s.messages...))
	return l
}

func BenchmarkRescore(b *testing.B) {
	const groups = 256
	l := rescoreLog(b, groups)
	b.ReportAllocs()
	for b.Loop() {
		_, err := l.Rescore(b.Context(), func(g *events.CodeExecuted) (*events.GroupRewarded, error) { return passShare(g, 0.25), nil }, nil, nil)
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(60*groups*float64(b.N)/b.Elapsed().Seconds(), "groups/min")
}
