package execution

import (
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"codea1/consumers/execution/internal/sandboxtest"
	"codea1/consumers/execution/sandbox"
	"codea1/consumers/execution/sandboxfusion"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pools.Main(m)) }

var pools = sandboxtest.Pools[sandbox.Config, *sandbox.Pool]{Skip: sandbox.ErrNotIsolated}

// quick is a configuration for tests that have to wait for a time limit. A test in
// which nothing runs into a limit has the configuration generous.
var quick = sandbox.Config{Workers: 1, CallTimeout: sandboxtest.CallTimeout, MemoryBytes: 192 << 20, CacheBytes: -1}

// everywhere runs a test on this machine at LevelIsolated and, in the thorough run, at
// LevelConfined and on a server of sandboxfusion.
func everywhere(t *testing.T, config sandbox.Config, test func(t *testing.T, x *Executor)) {
	t.Parallel()
	t.Run("isolated", func(t *testing.T) { test(t, openExecutor(t, config)) })
	if !sandboxtest.Thorough {
		return
	}
	t.Run("confined", func(t *testing.T) {
		test(t, New(pools.Own(t, func() (*sandbox.Pool, error) { return sandbox.OpenAt(t.Context(), config, sandbox.LevelConfined) })))
	})
	t.Run("served", func(t *testing.T) {
		behind := sandbox.Config{Workers: 4, MemoryBytes: 512 << 20, FileBytes: 16 << 20, CacheBytes: -1}
		server := httptest.NewServer(sandboxfusion.Handler(openExecutor(t, behind).pool, sandboxfusion.ServeLimits{Waiting: 64}))
		t.Cleanup(server.Close)
		flags := &sandbox.Flags{
			Sandbox: server.URL, SandboxLevel: string(sandbox.LevelOpen), Sandboxes: 2,
			CallTimeout: max(config.CallTimeout, served), JobTimeout: max(config.JobTimeout, 4*served), MemoryMiB: 192,
		}
		pool, err := sandboxfusion.Open(t.Context(), flags, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := pool.Close(); err != nil {
				t.Error(err)
			}
		})
		test(t, New(pool))
	})
}

// served is a limit that a busy server keeps: there, nothing counts the time that a
// program waits for a core.
const served = 5 * time.Second

// openExecutor returns an executor on a pool that tests with the same
// configuration share.
func openExecutor(t testing.TB, config sandbox.Config) *Executor {
	t.Helper()
	return New(pools.Get(t, config, func() (*sandbox.Pool, error) { return sandbox.Open(t.Context(), config) }))
}
