package execution

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(closing{m}) }

// closing closes the shared pools after the tests and before the look for
// goroutines that are left.
type closing struct{ *testing.M }

func (c closing) Run() int {
	code := c.M.Run()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	for _, p := range shared.pools {
		if err := p.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}

// shared are the pools of tests. To open one costs more than most tests; what a
// test does to a pool must be no matter to the next, as with candidates.
var shared struct {
	mu    sync.Mutex
	pools map[sharedKey]*Pool
}

type sharedKey struct {
	level  Level
	config Config
}

// openPool returns a pool that tests with the same configuration share.
func openPool(t testing.TB, config Config) *Pool {
	t.Helper()
	return share(t, sharedKey{config: config}, func() (*Pool, error) { return Open(t.Context(), config) })
}

// openAt is openPool at one level. It skips the test where the machine does not
// give that.
func openAt(t testing.TB, level Level, config Config) *Pool {
	t.Helper()
	return share(t, sharedKey{level, config}, func() (*Pool, error) {
		return open(t.Context(), config.withDefaults(), []Level{level})
	})
}

func share(t testing.TB, key sharedKey, open func() (*Pool, error)) *Pool {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if p := shared.pools[key]; p != nil {
		return p
	}
	p, err := open()
	if key.level != "" && errors.Is(err, ErrNotIsolated) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if shared.pools == nil {
		shared.pools = map[sharedKey]*Pool{}
	}
	shared.pools[key] = p
	return p
}

// openOwn opens a pool for one test alone and closes it after.
func openOwn(t testing.TB, level Level, config Config) *Pool {
	t.Helper()
	p, err := open(t.Context(), config.withDefaults(), []Level{level})
	if errors.Is(err, ErrNotIsolated) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}
