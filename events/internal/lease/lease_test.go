package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"codea1/events"
	"codea1/events/internal/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// table is a Register in memory whose requests can fail.
type table struct {
	mu       sync.Mutex
	record   Record
	revision uint64
	old      Record // record of a lagging copy
	away     bool   // requests fail
	lost     int    // number of answers to Swap that get lost
	lagging  bool
	swaps    int
}

var errAway = fmt.Errorf("the register is away: %w", client.ErrOutage)

func (r *table) Load(context.Context) (Record, uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.away:
		return Record{}, 0, errAway
	case r.lagging:
		return r.old, r.revision - 1, nil
	}
	return r.record, r.revision, nil
}

func (r *table) Swap(_ context.Context, revision uint64, record Record) (uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.away:
		return 0, errAway
	case revision != r.revision:
		return 0, ErrChanged
	}
	r.swaps++
	r.old, r.record = r.record, record
	r.revision++
	if r.lost > 0 {
		r.lost--
		return 0, errAway
	}
	return r.revision, nil
}

func (r *table) set(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

const ttl = 3 * time.Second

func config(owner string) events.LeaseConfig {
	return events.LeaseConfig{Run: "r", Name: "log", Owner: owner, TTL: ttl}
}

func take(t *testing.T, r Register, c events.LeaseConfig) *Lease {
	t.Helper()
	l, err := Take(t.Context(), r, c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// owners returns the number of leases that confirm now.
func owners(leases ...*Lease) int {
	n := 0
	for _, l := range leases {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if l.Confirm(ended) == nil {
			n++
		}
	}
	return n
}

func TestOwnerRenewsAndIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(table)
		first := take(t, r, config("a"))
		time.Sleep(10*ttl + time.Millisecond)
		r.set(func() {
			if r.swaps != 31 {
				t.Errorf("%d records, want 31: three a TTL", r.swaps)
			}
		})
		began := time.Now()
		_, err := Take(t.Context(), r, config("b"))
		if !errors.Is(err, events.ErrLeased) || time.Since(began) > ttl/renewalsPerTTL+ttl/watchesPerTTL {
			t.Errorf("second owner: %v after %v", err, time.Since(began))
		}
		if owners(first) != 1 {
			t.Error("the first owner does not confirm")
		}
		_ = first.Close()
	})
}

// An owner that cannot renew stops confirming before another client takes over,
// whenever the connection is cut.
func TestOneOwnerAtATime(t *testing.T) {
	for _, cut := range []time.Duration{0, time.Millisecond, time.Second, time.Second + time.Millisecond, 2500 * time.Millisecond} {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := new(table)
				// Only the owner loses its connection to the register.
				link := &cable{Register: r}
				first := take(t, link, config("a"))
				time.Sleep(cut)
				link.set(true)
				waiting := config("b")
				waiting.Wait = true
				taken := make(chan *Lease)
				go func() {
					second, err := Take(t.Context(), r, waiting)
					if err != nil {
						t.Error(err)
					}
					taken <- second
				}()
				var second *Lease
				for second == nil {
					select {
					case second = <-taken:
					case <-time.After(time.Millisecond):
					}
				}
				if n := owners(first, second); n != 1 {
					t.Errorf("%d owners", n)
				}
				link.set(false)
				<-first.Lost()
				if err := first.Confirm(t.Context()); !errors.Is(err, events.ErrLeaseLost) {
					t.Errorf("confirm: %v", err)
				}
				_ = first.Close()
				if owners(second) != 1 {
					t.Error("the first owner's end disturbed the second")
				}
				_ = second.Close()
			})
		})
	}
}

// cable is a connection to a register that can be cut.
type cable struct {
	Register
	mu  sync.Mutex
	cut bool
}

func (c *cable) set(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
}

func (c *cable) isCut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut
}

func (c *cable) Load(ctx context.Context) (Record, uint64, error) {
	if c.isCut() {
		return Record{}, 0, errAway
	}
	return c.Register.Load(ctx)
}

func (c *cable) Swap(ctx context.Context, revision uint64, record Record) (uint64, error) {
	if c.isCut() {
		return 0, errAway
	}
	return c.Register.Swap(ctx, revision, record)
}

// An outage for all clients moves no lease. After it the owner continues, and a
// waiting client counts its TTL again.
func TestOutageMovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(table)
		first := take(t, r, config("a"))
		waiting := config("b")
		waiting.Wait = true
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := Take(ctx, r, waiting)
			ended <- err
		}()
		for range 5 {
			time.Sleep(ttl / 2)
			r.set(func() { r.away = true })
			time.Sleep(10 * ttl)
			if owners(first) != 0 {
				t.Error("an owner without its bus confirms")
			}
			r.set(func() { r.away = false })
			if err := first.Confirm(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the waiting client: %v", err)
		}
		_ = first.Close()
	})
}

// A record that was stored without an answer belongs to its owner.
func TestLostAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &table{lost: 2}
		c := config("a")
		c.Wait = true
		l := take(t, r, c)
		for range 10 {
			r.set(func() { r.lost = 2 })
			time.Sleep(ttl)
			if owners(l) != 1 {
				t.Error("after a lost answer the owner does not confirm")
			}
		}
		// A lagging copy has old records.
		r.set(func() { r.lost, r.lagging = 1, true })
		time.Sleep(ttl / 2)
		r.set(func() { r.lagging = false })
		if err := l.Confirm(t.Context()); err != nil {
			t.Error(err)
		}
		r.set(func() { r.lost = 1 })
		_ = l.Close()
		began := time.Now()
		next := take(t, r, config("b"))
		if time.Since(began) > 0 {
			t.Errorf("taken %v after it was given back", time.Since(began))
		}
		_ = next.Close()
	})
}

func TestManyWaitOneGets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(table)
		const n = 8
		leases := make(chan *Lease, n)
		var waiting sync.WaitGroup
		for i := range n {
			waiting.Go(func() {
				c := config(fmt.Sprint(i))
				c.Wait = true
				l, err := Take(t.Context(), r, c)
				if err != nil {
					t.Error(err)
				}
				leases <- l
			})
		}
		for range n {
			l := <-leases
			time.Sleep(2 * ttl)
			if len(leases) > 0 {
				t.Error("two owners")
			}
			if owners(l) != 1 {
				t.Error("the owner does not confirm")
			}
			_ = l.Close()
		}
		waiting.Wait()
	})
}

// An outage when the lease is asked for is waited for; another error is not.
func TestUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &table{away: true}
		go func() {
			time.Sleep(time.Hour)
			r.set(func() { r.away = false })
		}()
		began := time.Now()
		l := take(t, r, config("a"))
		if waited := time.Since(began); waited < time.Hour {
			t.Errorf("taken after %v, without a register", waited)
		}
		_ = l.Close()
	})
	forbidden := errors.New("forbidden")
	waiting := config("a")
	waiting.Wait = true
	if _, err := Take(t.Context(), refusing{forbidden}, waiting); !errors.Is(err, forbidden) {
		t.Errorf("take: %v", err)
	}
}

// refusing is a Register that refuses every request.
type refusing struct{ err error }

func (r refusing) Load(context.Context) (Record, uint64, error) { return Record{}, 0, r.err }

func (r refusing) Swap(context.Context, uint64, Record) (uint64, error) { return 0, r.err }
