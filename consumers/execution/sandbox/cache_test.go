package sandbox

import (
	"context"
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"codea1/consumers/execution/literal"
)

func TestCache(t *testing.T) {
	config := quick
	config.CacheBytes = 0 // the default
	// The test has a pool of its own, because the cached results count.
	p, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	metrics := prometheus.NewRegistry()
	if err := p.Register(metrics); err != nil {
		t.Fatal(err)
	}
	run := func(code string, calls ...string) Report {
		t.Helper()
		report, err := p.Run(t.Context(), Program{Code: code}, calls)
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	const steady = "def f(x): return [x]"
	first := run(steady, "f(1)")
	for range 3 {
		if again := run(steady, "f(1)"); !again.Loads || again.Unstable || show(again.Outcomes[0]) != show(first.Outcomes[0]) {
			t.Errorf("got %+v, want %+v", again, first)
		}
	}
	// Other calls, other code, other order: other executions.
	run(steady, "f(2)")
	run(steady, "f(1)", "f(2)")
	run(steady+" ", "f(1)")
	if got, want := p.CacheStats(), (CacheStats{Hits: 2, Misses: 5}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	// The clock of another run is another clock.
	const shaky = "import time\ndef f(): return time.time_ns()"
	if run(shaky, "f()").Unstable || !run(shaky, "f()").Unstable || !run(shaky, "f()").Unstable {
		t.Error("a program that reads the clock is not marked at its second run and after")
	}
	if got := p.CacheStats(); got.Hits != 2 || got.Unstable != 1 {
		t.Errorf("got %+v", got)
	}
	// A crash is run again each time.
	for range 3 {
		run("import os\ndef f(): os._exit(1)", "f()")
	}
	if got := p.CacheStats().Hits; got != 2 {
		t.Errorf("a crash was answered from the cache")
	}
	families, err := metrics.Gather()
	if err != nil || len(families) != 3 {
		t.Errorf("%d metrics, %v", len(families), err)
	}
}

func TestCacheIsBounded(t *testing.T) {
	c := newCache(10 * minEntryBytes)
	ran := 0
	execute := func(n int64) {
		key := cacheKey{byte(n), byte(n >> 8)}
		_, err := c.run(t.Context(), key, func(context.Context) (Report, error) {
			ran++
			return Report{Loads: true, Outcomes: []Outcome{{Kind: Returned, Value: literal.NewInt(n)}}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for n := range int64(1000) {
		execute(n)
	}
	if c.bytes > c.most || len(c.entries) != c.recent.Len() || len(c.entries) > 10 {
		t.Errorf("%d bytes, %d and %d entries", c.bytes, len(c.entries), c.recent.Len())
	}
	execute(999)
	execute(999) // from the cache
	if ran != 1001 {
		t.Errorf("%d runs, want 1001", ran)
	}
	failing := errors.New("no")
	if _, err := c.run(t.Context(), cacheKey{1}, func(context.Context) (Report, error) { return Report{}, failing }); !errors.Is(err, failing) {
		t.Errorf("got %v", err)
	}
}
