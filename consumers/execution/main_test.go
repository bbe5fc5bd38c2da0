package execution

import (
	"errors"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// openPool opens a pool for one test and closes it after.
func openPool(t testing.TB, config Config) *Pool {
	t.Helper()
	p, err := Open(t.Context(), config)
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

// openAt opens a pool at one level for one test, or skips the test where the
// machine does not give it.
func openAt(t testing.TB, level Level, config Config) *Pool {
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
