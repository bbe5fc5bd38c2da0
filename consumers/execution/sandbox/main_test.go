package sandbox

import (
	"testing"

	"go.uber.org/goleak"

	"codea1/consumers/execution/internal/sandboxtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pools.Main(m)) }

type poolKey struct {
	level  Level
	config Config
}

var pools = sandboxtest.Pools[poolKey, *Pool]{Skip: ErrNotIsolated}

// openPool returns a pool that tests with the same configuration share.
func openPool(t testing.TB, config Config) *Pool {
	t.Helper()
	return pools.Get(t, poolKey{config: config}, func() (*Pool, error) { return Open(t.Context(), config) })
}

// openAt is openPool at one level. It skips the test where the machine does not
// give that.
func openAt(t testing.TB, level Level, config Config) *Pool {
	t.Helper()
	return pools.Get(t, poolKey{level, config}, func() (*Pool, error) { return OpenAt(t.Context(), config, level) })
}

// openOwn opens a pool for one test alone and closes it after.
func openOwn(t testing.TB, level Level, config Config) *Pool {
	t.Helper()
	return pools.Own(t, func() (*Pool, error) { return OpenAt(t.Context(), config, level) })
}

// servers returns the fork servers of a pool.
func servers(p *Pool) *forkServers { return p.backend.(*forkServers) }

// forkServerOf returns a pool's only, idle fork server.
func forkServerOf(p *Pool) *forkServer {
	slot := <-p.slots
	defer func() { p.slots <- slot }()
	return servers(p).running[slot]
}

func forkServerPID(p *Pool) int { return forkServerOf(p).command.Process.Pid }
