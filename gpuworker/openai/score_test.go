package openai_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"codea1/gpuworker"
	"codea1/gpuworker/openai"
)

// scorer serves answers of a reward model and returns a sampler that has a key for it.
func scorer(t *testing.T, serve http.HandlerFunc) *openai.Sampler {
	t.Helper()
	server := httptest.NewServer(serve)
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	sampler, err := openai.New(openai.Options{URL: server.URL, Model: "m", KeyFile: file, Backoff: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sampler.Close(); server.Close() })
	return sampler
}

var judged = []gpuworker.Message{{Role: "user", Content: "q"}, {Role: "assistant", Content: "x = 1"}}

// A score is one finite number of a usual size, and no other answer of a server is one. Its size
// is bounded. An error has no part of the key.
func TestScoresOfHostileServers(t *testing.T) {
	t.Parallel()
	probs := func(text string) string { return `{"data": [{"probs": ` + text + `}]}` }
	for answer, want := range map[string]float64{probs("[-2.5]"): -2.5, probs("[0]"): 0, probs("[1e6]"): 1e6} {
		s := scorer(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) })
		if got, err := s.Score(t.Context(), judged); err != nil || got != want {
			t.Errorf("%s: %v, %v", answer, got, err)
		}
	}
	for name, serve := range map[string]http.HandlerFunc{
		"not finite":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, probs("[NaN]")) },
		"infinite":    func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, probs("[1e999]")) },
		"huge number": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, probs("[1e308]")) },
		"null":        func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, probs("[null]")) },
		"text":        func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, probs(`["1"]`)) },
		"two labels":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, probs("[1, 2]")) },
		"no label":    func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, probs("[]")) },
		"two chats": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"data": [{"probs": [1]}, {"probs": [1]}]}`)
		},
		"no JSON": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>Welcome "+key+"</html>") },
		"deep":    func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("[", 100_000)) },
		"endless": func(w http.ResponseWriter, r *http.Request) { flood(w, r, `{"data": [{"probs": [1, `) },
		"refused": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no "+key, http.StatusBadRequest) },
		"cut answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "{")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := scorer(t, serve).Score(t.Context(), judged)
			if !errors.Is(err, openai.ErrProtocol) && !errors.Is(err, openai.ErrRefused) || strings.Contains(err.Error(), key) || len(err.Error()) > 2000 {
				t.Errorf("%v", err)
			}
		})
	}
}

// flood writes an answer without an end.
func flood(w http.ResponseWriter, r *http.Request, begin string) {
	part := []byte(begin + strings.Repeat("1, ", 1<<15))
	for r.Context().Err() == nil {
		if _, err := w.Write(part); err != nil {
			return
		}
	}
}

// A redirect is not followed: the other host would get the answers and the key. A server
// that is busy is asked again.
func TestScoresAreAskedOfOneServer(t *testing.T) {
	t.Parallel()
	var visits atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	defer other.Close()
	s := scorer(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	if _, err := s.Score(t.Context(), judged); !errors.Is(err, openai.ErrRefused) || visits.Load() > 0 {
		t.Errorf("%v, %d visits of the other host", err, visits.Load())
	}
	var asked atomic.Int64
	s = scorer(t, func(w http.ResponseWriter, _ *http.Request) {
		if n := asked.Add(1); n <= 6 {
			w.Header().Set("Retry-After", "0.001")
			w.WriteHeader([]int{http.StatusTooManyRequests, http.StatusServiceUnavailable}[n%2])
			return
		}
		fmt.Fprint(w, `{"data": [{"probs": [3]}]}`)
	})
	if got, err := s.Score(t.Context(), judged); err != nil || got != 3 {
		t.Errorf("after 6 busy answers: %v, %v", got, err)
	}
}
