package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"codea1/consumers/execution/internal/sandboxtest"
	"codea1/consumers/execution/literal"
)

// TestCampaign runs jobs of which 5% hang, 2% take all memory and 2% crash.
// Every outcome must be right, and nothing may be left behind. The default run
// has one that hangs, two of each other kind and some that end well.
// CODEA1_CAMPAIGN_JOBS is a number of jobs: 10000 show that memory stays flat.
func TestCampaign(t *testing.T) {
	// A slow machine needs long to fill the memory.
	jobs, callTimeout := 100, 4*time.Second
	if text := os.Getenv("CODEA1_CAMPAIGN_JOBS"); text != "" {
		var err error
		if jobs, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		callTimeout = 700 * time.Millisecond // for an idle machine
	} else {
		sandboxtest.OnlyThorough(t, "TestRedTeam has attacks one by one")
	}
	const workers = 2
	p := openAt(t, LevelIsolated, Config{Workers: workers, CallTimeout: callTimeout, MemoryBytes: 128 << 20, CacheBytes: -1})
	const code = `
import os, time
def f(x):
    kind = x % 100
    if kind < 1:
        while True: pass
    if kind < 5:
        while True: time.sleep(1)
    if kind < 7:
        held = []
        while True: held.append(bytearray(1 << 24))
    if kind < 9:
        os._exit(1) if x % 2 else os.abort()
    return [x, str(x)]
`
	run := func(from, to int) {
		var running errgroup.Group
		running.SetLimit(workers)
		for i := from; i < to; i++ {
			running.Go(func() error {
				want := Returned
				switch kind := i % 100; {
				case kind < 5:
					want = TimedOut
				case kind < 7:
					want = Raised
				case kind < 9:
					want = Crashed
				}
				report, err := p.Run(t.Context(), Program{Code: code, EntryPoint: "f"}, []string{fmt.Sprintf("f(%d)", i), "f(99)"})
				if err != nil {
					return err
				}
				got := report.Outcomes
				if got[0].Kind != want || want == Returned && literal.Text(got[0].Value) != fmt.Sprintf("[%d, '%d']", i, i) ||
					got[1].Value == nil || literal.Text(got[1].Value) != "[99, '99']" {
					t.Errorf("f(%d): %+v, want %v", i, got, want)
				}
				return nil
			})
		}
		if err := running.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	run(97, 97+workers) // both fork servers have done something
	before := takeStock(t)
	run(0, jobs)
	after := takeStock(t)
	t.Logf("before %+v, after %d jobs %+v", before, jobs, after)
	// A fork server has a child that waits for the next job, or not yet.
	if after.descriptors != before.descriptors || after.mounts > before.mounts || after.processes > before.processes+workers {
		t.Errorf("left behind: before %+v, after %+v", before, after)
	}
	if grown := after.heapKiB - before.heapKiB; grown > 8<<10 {
		t.Errorf("the heap grew by %d KiB", grown)
	}
}

// stock counts the things that a pool could leak.
type stock struct {
	descriptors, mounts, processes int
	heapKiB                        int64
}

// poolMounts returns the number of mounts in the directories of pools. Other
// tests mount file systems of their own elsewhere.
func poolMounts(mounts string) (n int) {
	for line := range strings.Lines(mounts) {
		if strings.Contains(line, "/"+rootPrefix) {
			n++
		}
	}
	return n
}

func takeStock(t *testing.T) stock {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Skip("mounts cannot be counted:", err)
	}
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return stock{
		descriptors: openDescriptors(t), mounts: poolMounts(string(mounts)),
		processes: len(descendants(t, os.Getpid())), heapKiB: int64(memory.HeapAlloc >> 10),
	}
}
