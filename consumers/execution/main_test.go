package execution

import (
	"testing"

	"go.uber.org/goleak"

	"codea1/consumers/execution/internal/sandboxtest"
	"codea1/consumers/execution/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pools.Main(m)) }

var pools = sandboxtest.Pools[sandbox.Config, *sandbox.Pool]{Skip: sandbox.ErrNotIsolated}

// quick is a configuration for tests that have to wait for a time limit: long
// enough for every program that ends on its own, on a busy machine too.
var quick = sandbox.Config{Workers: 1, CallTimeout: sandboxtest.CallTimeout, MemoryBytes: 192 << 20, CacheBytes: -1}

// openExecutor returns an executor on a pool that tests with the same
// configuration share.
func openExecutor(t testing.TB, config sandbox.Config) *Executor {
	t.Helper()
	return New(pools.Get(t, config, func() (*sandbox.Pool, error) { return sandbox.Open(t.Context(), config) }))
}
