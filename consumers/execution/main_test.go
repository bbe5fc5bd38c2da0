package execution

import (
	"testing"

	"go.uber.org/goleak"

	"codea1/consumers/execution/internal/sandboxtest"
	"codea1/consumers/execution/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pools.Main(m)) }

type poolKey struct {
	level  sandbox.Level
	config sandbox.Config
}

var pools = sandboxtest.Pools[poolKey, *sandbox.Pool]{Skip: sandbox.ErrNotIsolated}

// quick is a configuration for tests that have to wait for a time limit: long
// enough for every program that ends on its own, on a busy machine too.
var quick = sandbox.Config{Workers: 1, CallTimeout: sandboxtest.CallTimeout, MemoryBytes: 192 << 20, CacheBytes: -1}

// openExecutor returns an executor on a pool that tests with the same
// configuration share.
func openExecutor(t testing.TB, config sandbox.Config) *Executor {
	t.Helper()
	return New(pools.Get(t, poolKey{config: config}, func() (*sandbox.Pool, error) { return sandbox.Open(t.Context(), config) }))
}

// openUnconfined is openExecutor at LevelOpen, where a candidate can reach its
// fork server.
func openUnconfined(t testing.TB, config sandbox.Config) *Executor {
	t.Helper()
	return New(pools.Get(t, poolKey{sandbox.LevelOpen, config}, func() (*sandbox.Pool, error) {
		return sandbox.OpenAt(t.Context(), config, sandbox.LevelOpen)
	}))
}
