package execution

import "codea1/consumers/execution/sandbox"

// Executor executes groups and runs golden tests in a sandbox. Its methods may be
// called from any number of goroutines.
type Executor struct {
	pool   *sandbox.Pool
	config sandbox.Config
}

// New returns an Executor that runs programs in pool. The caller closes the pool.
func New(pool *sandbox.Pool) *Executor { return &Executor{pool, pool.Config()} }
