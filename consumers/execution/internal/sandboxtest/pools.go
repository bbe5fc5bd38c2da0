package sandboxtest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
)

// Pools keeps pools open from test to test, one for each key. To open one costs
// more than most tests. As with candidates, no test sees anything that another left.
type Pools[K comparable, P io.Closer] struct {
	// Skip is the error of opening that skips the test.
	Skip error

	mu   sync.Mutex
	open map[K]P
}

// Get returns the pool for a key. The first test that needs it opens it.
func (s *Pools[K, P]) Get(t testing.TB, key K, open func() (P, error)) P {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	p, known := s.open[key]
	if !known {
		p = s.must(t, open)
		if s.open == nil {
			s.open = map[K]P{}
		}
		s.open[key] = p
	}
	return p
}

// Own opens a pool for one test and closes it after.
func (s *Pools[K, P]) Own(t testing.TB, open func() (P, error)) P {
	t.Helper()
	p := s.must(t, open)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (s *Pools[K, P]) must(t testing.TB, open func() (P, error)) P {
	t.Helper()
	p, err := open()
	if s.Skip != nil && errors.Is(err, s.Skip) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Main runs the tests and then closes the pools, for goleak.VerifyTestMain: the
// goroutines of open pools are no leak.
func (s *Pools[K, P]) Main(m *testing.M) Runner {
	return func() int {
		code := m.Run()
		for _, p := range s.open {
			if err := p.Close(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}
		return code
	}
}

// Runner is a function in the place of a *testing.M.
type Runner func() int

// Run implements goleak.TestingM.
func (r Runner) Run() int { return r() }
