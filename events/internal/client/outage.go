package client

import (
	"errors"
	"log/slog"
	"sync"
	"time"
)

// ErrOutage is returned for a request that the servers did not execute for now:
// they are unreachable, or none of them leads. Another try may succeed.
var ErrOutage = errors.New("the bus does not answer")

// Outages logs the begin and the end of an outage, once for all calls that wait
// for it.
type Outages struct {
	Logger     *slog.Logger
	Lost, Back string // messages of the two lines

	mu      sync.Mutex
	waiting int       // calls that wait
	since   time.Time // begin of the logged outage; zero for none
}

// Wait is one call that may have to wait for the end of an outage. The zero
// value has not waited.
type Wait struct {
	outages *Outages
	began   time.Time
}

// Failed notes that the call has to wait, and returns how long it has waited. It
// logs the outage once a call has waited longer than patience.
func (o *Outages) Failed(w *Wait, patience time.Duration, reason error, attrs ...any) (waited time.Duration) {
	if w.began.IsZero() {
		w.began = time.Now()
	}
	waited = time.Since(w.began)
	if w.outages != nil || waited < patience {
		return waited
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	w.outages = o
	o.waiting++
	if o.since.IsZero() {
		o.since = w.began
		o.Logger.Warn(o.Lost, append(attrs, "error", reason)...)
	}
	return waited
}

// End ends the wait. served says that the servers have executed the request. The
// last call that waited logs the end of the outage then.
func (w *Wait) End(served bool) {
	o := w.outages
	*w = Wait{}
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting--
	if o.waiting > 0 {
		return
	}
	if served {
		o.Logger.Warn(o.Back, "outage", time.Since(o.since).Round(time.Millisecond))
	}
	o.since = time.Time{}
}
