package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// snapshots encodes each revision of the state at most once, for any number of
// requests.
type snapshots struct {
	follower *Follower

	mu       sync.Mutex
	revision int64
	data     []byte
}

func (s *snapshots) json() (data []byte, revision int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.data != nil && s.follower.View(func(*State) {}) == s.revision {
		return s.data, s.revision, nil
	}
	var snapshot Snapshot
	revision = s.follower.View(func(state *State) { snapshot = state.Snapshot() })
	if data, err = json.Marshal(snapshot); err != nil {
		return nil, 0, fmt.Errorf("dashboard: encode the state: %w", err)
	}
	s.data, s.revision = data, revision
	return data, revision, nil
}

func (s *snapshots) serve(w http.ResponseWriter, _ *http.Request) {
	data, _, err := s.json()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // the client may have disconnected
}

// streams serves the state as server-sent events: one `state` event at the start
// and one after a change, at most one per streamEvery. A slow page misses states
// in between, but never the newest.
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
	for {
		var message []byte
		select {
		case <-r.Context().Done():
			return
		case <-alive.C:
			message = []byte(": alive\n\n")
		case <-changes:
			data, revision, err := s.snapshots.json()
			if err != nil {
				return
			}
			message = sseMessage("state", revision, data)
		}
		if err := send(w, message); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
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

func send(w http.ResponseWriter, message []byte) error {
	control := http.NewResponseController(w)
	if err := control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := w.Write(message); err != nil {
		return err
	}
	return control.Flush()
}
