package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// snapshots encodes each revision of the state once for the requests that need the
// same part of the series, which are most.
type snapshots struct {
	follower *Follower

	mu       sync.Mutex
	revision int64
	since    int64
	clock    int64
	data     []byte
}

// json returns the snapshot with the points of the series that changed after a clock,
// and the clock for the next one.
func (s *snapshots) json(since int64) (data []byte, revision, clock int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.data != nil && s.since == since && s.follower.View(func(*State) {}) == s.revision {
		return s.data, s.revision, s.clock, nil
	}
	var snapshot Snapshot
	revision = s.follower.View(func(state *State) { snapshot = state.snapshot(since) })
	if data, err = json.Marshal(snapshot); err != nil {
		return nil, 0, 0, fmt.Errorf("dashboard: encode the state: %w", err)
	}
	s.data, s.revision, s.since, s.clock = data, revision, since, snapshot.clock
	return data, revision, snapshot.clock, nil
}

func (s *snapshots) serve(w http.ResponseWriter, _ *http.Request) {
	data, _, _, err := s.json(-1)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // the client may have disconnected
}

// streams serves the state as server-sent events: one `state` event at the start
// and one after a change, at most one per streamEvery. Its series has the points
// that changed since the event before. A slow page misses states in between, but
// never the newest, which it also gets when the server ends.
type streams struct {
	follower  *Follower
	snapshots *snapshots
	slots     chan struct{} // holds a value per stream
}

func (s *streams) serve(w http.ResponseWriter, r *http.Request) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		w.Header().Set("Retry-After", "10")
		http.Error(w, fmt.Sprintf("%d pages already follow this run; close one of them", cap(s.slots)), http.StatusServiceUnavailable)
		return
	}
	changes, unsubscribe := s.follower.Subscribe()
	defer unsubscribe()
	w.Header().Set("Content-Type", "text/event-stream")

	alive := time.NewTicker(streamKeepAlive)
	defer alive.Stop()
	next := time.NewTicker(streamEvery)
	defer next.Stop()
	for since, ending := int64(-1), false; !ending; {
		var message []byte
		newest := false
		select {
		case <-r.Context().Done():
			// The page has the last state after the end of this process, in particular
			// the end of the run.
			ending, newest = true, true
		case <-alive.C:
			message = []byte(": alive\n\n")
		case <-changes:
			newest = true
		}
		if newest {
			data, revision, clock, err := s.snapshots.json(since)
			if err != nil {
				return
			}
			message, since = sseMessage("state", revision, data), clock
		}
		timeout := writeTimeout
		if ending {
			timeout = lastWriteTimeout
		}
		if err := send(w, message, timeout); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
		case <-next.C:
		}
	}
}

// sseMessage frames one line of data as the section "Server-sent events" of the
// HTML standard defines it.
func sseMessage(event string, id int64, data []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "event: %s\nid: %d\ndata: ", event, id)
	b.Write(data)
	b.WriteString("\n\n")
	return b.Bytes()
}

func send(w http.ResponseWriter, message []byte, timeout time.Duration) error {
	control := http.NewResponseController(w)
	if err := control.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	if _, err := w.Write(message); err != nil {
		return err
	}
	return control.Flush()
}
