package sandbox

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"codea1/consumers/execution/literal"
)

// cache holds the reports of executions, by a hash of everything that decides
// them: program, calls, limits and Python.
//
// A report is returned without running only after a second run has agreed with it.
// If two runs differ, the program is not deterministic: its entry is marked, and it
// always runs. A report with a timeout or a crash is not kept, because it may
// depend on the load of the machine.
type cache struct {
	mu       sync.Mutex
	most     int64 // bytes
	bytes    int64
	entries  map[cacheKey]*list.Element
	recent   list.List // of *cached, most recently used first
	hits     uint64
	misses   uint64
	unstable uint64
}

type cacheKey [sha256.Size]byte

type cached struct {
	key    cacheKey
	bytes  int64
	report Report
	state  cacheState
}

type cacheState int

const (
	stateOnce     cacheState = iota // one run
	stateAgreed                     // two runs agreed
	stateUnstable                   // two runs differed
)

// newCache returns a cache that holds at most so many bytes; a negative number
// means none.
func newCache(most int64) *cache {
	return &cache{most: max(0, most), entries: map[cacheKey]*list.Element{}}
}

// executionKey hashes everything that decides the outcome of an execution. The
// length of each part comes before it, so different executions have different
// input.
func (p *Pool) executionKey(j *Job) cacheKey {
	hash := sha256.New()
	var size [8]byte
	number := func(n int64) {
		binary.LittleEndian.PutUint64(size[:], uint64(n))
		hash.Write(size[:]) // a hash never fails to write
	}
	for _, text := range append([]string{p.about.Python, string(p.about.Level), hashSeed(j.Varied), strconv.FormatBool(j.Digests), j.Code, j.Entry}, j.Items...) {
		number(int64(len(text)))
		hash.Write([]byte(text))
	}
	c := &p.config
	for _, limit := range []int64{int64(j.Budget), int64(j.Each), c.MemoryBytes, c.FileBytes, int64(j.ValueBytes)} {
		number(limit)
	}
	return cacheKey(hash.Sum(nil))
}

// run answers from the cache, or by execute.
func (c *cache) run(ctx context.Context, key cacheKey, execute func(context.Context) (Report, error)) (Report, error) {
	if report, ok := c.get(key); ok {
		return report, nil
	}
	report, err := execute(ctx)
	if err != nil {
		return Report{}, err
	}
	return c.put(key, report), nil
}

func (c *cache) get(key cacheKey) (Report, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, known := c.entries[key]
	if !known || e.Value.(*cached).state != stateAgreed {
		c.misses++
		return Report{}, false
	}
	c.hits++
	c.recent.MoveToFront(e)
	report := e.Value.(*cached).report
	report.Outcomes = slices.Clone(report.Outcomes)
	return report, true
}

// put stores the report of a run and returns it, marked if an earlier run differed.
func (c *cache) put(key cacheKey, report Report) Report {
	if !repeatable(report) {
		return report
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, known := c.entries[key]; known {
		entry := e.Value.(*cached)
		c.recent.MoveToFront(e)
		switch {
		case entry.state == stateUnstable:
		case sameReport(entry.report, report):
			entry.state = stateAgreed
		default:
			entry.state = stateUnstable
			c.unstable++
			c.bytes -= entry.bytes
			entry.bytes, entry.report = minEntryBytes, Report{} // the mark stays
			c.bytes += entry.bytes
		}
		report.Unstable = entry.state == stateUnstable
		return report
	}
	kept := report
	kept.Outcomes = slices.Clone(report.Outcomes)
	entry := &cached{key: key, bytes: reportBytes(report), report: kept}
	c.entries[key] = c.recent.PushFront(entry)
	c.bytes += entry.bytes
	for c.bytes > c.most {
		oldest := c.recent.Back()
		gone := c.recent.Remove(oldest).(*cached)
		delete(c.entries, gone.key)
		c.bytes -= gone.bytes
	}
	return report
}

// repeatable reports whether another run should give the same report.
func repeatable(r Report) bool {
	return r.Loads && !slices.ContainsFunc(r.Outcomes, func(o Outcome) bool { return o.Kind != Returned && o.Kind != Raised })
}

// sameReport ignores messages: they may hold addresses of objects.
func sameReport(a, b Report) bool {
	return slices.EqualFunc(a.Outcomes, b.Outcomes, func(x, y Outcome) bool {
		if x.Kind != y.Kind || (x.Value == nil) != (y.Value == nil) {
			return false
		}
		if x.Value == nil {
			return x.Digest() == y.Digest()
		}
		return literal.Key(x.Value) == literal.Key(y.Value)
	})
}

// minEntryBytes is roughly the size of an entry without its report.
const minEntryBytes = 256

func reportBytes(r Report) int64 {
	size := int64(minEntryBytes)
	for _, o := range r.Outcomes {
		size += 64 + int64(len(o.Detail))
		if o.Value != nil {
			size += 4 * int64(len(literal.Text(o.Value))) // a value needs more memory than its text
		}
	}
	return size
}

// CacheStats counts executions.
type CacheStats struct {
	Hits     uint64 // executions answered from the cache
	Misses   uint64 // executions that ran
	Unstable uint64 // programs whose runs differed
}

// CacheStats returns the counts since the pool was opened.
func (p *Pool) CacheStats() CacheStats {
	p.cache.mu.Lock()
	defer p.cache.mu.Unlock()
	return CacheStats{p.cache.hits, p.cache.misses, p.cache.unstable}
}

// Register adds the cache's counters to the metrics.
func (p *Pool) Register(metrics prometheus.Registerer) error {
	for _, c := range []struct {
		name, help string
		count      func(CacheStats) uint64
	}{
		{"codea1_execution_cache_hits_total", "Executions answered from the cache.", func(s CacheStats) uint64 { return s.Hits }},
		{"codea1_execution_cache_misses_total", "Executions that ran.", func(s CacheStats) uint64 { return s.Misses }},
		{"codea1_execution_unstable_total", "Programs whose runs returned different values for the same calls.", func(s CacheStats) uint64 { return s.Unstable }},
	} {
		counter := prometheus.NewCounterFunc(prometheus.CounterOpts{Name: c.name, Help: c.help}, func() float64 { return float64(c.count(p.CacheStats())) })
		if err := metrics.Register(counter); err != nil {
			return err
		}
	}
	return nil
}
