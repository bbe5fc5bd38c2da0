package sandboxfusion

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"codea1/consumers/execution/internal/sandboxtest"
	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
)

// TestRemoteRetries: a server that fails, or is full, is asked again.
func TestRemoteRetries(t *testing.T) {
	t.Parallel()
	behind := Handler(openPool(t, sandbox.Config{Workers: 1, FileBytes: 16 << 20}), ServeLimits{})
	var asked atomic.Int64
	var fail atomic.Pointer[http.HandlerFunc]
	p := openOn(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := fail.Load(); f != nil && asked.Add(1) <= 2 {
			(*f)(w, r)
			return
		}
		behind.ServeHTTP(w, r)
	}), quick, hasty)
	for name, f := range misbehaviours() {
		if name == "refuses" {
			continue
		}
		asked.Store(0)
		fail.Store(&f)
		if got := literal.Text(runOne(t, p, "x = 5", "x")); got != "5" || asked.Load() != 3 {
			t.Errorf("%s: %s after %d requests", name, got, asked.Load())
		}
	}
}

// misbehaviours are the ways in which a server may fail; none is a verdict.
func misbehaviours() map[string]http.HandlerFunc {
	write := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
	}
	reply := func(stdout string) string {
		return fmt.Sprintf(`{"status": "Success", "message": "", "run_result": {"status": "Finished", "return_code": 0, "stdout": %q, "stderr": "bash: python: command not found"}, "files": {}}`, stdout)
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(code)
		}
	}
	all := map[string]http.HandlerFunc{
		"500":            status(500),
		"502":            status(502),
		"429":            status(429),
		"503":            status(503),
		"refuses":        status(422),
		"no JSON":        write("<html>"),
		"truncated JSON": write(reply("")[:40]),
		"no result":      write(`{"status": "Success", "message": ""}`),
		"sandbox error":  write(`{"status": "SandboxError", "message": "no disk"}`),
		"command error":  write(`{"status": "Failed", "message": "", "run_result": {"status": "Error", "stderr": "no fork"}}`),
		"no output":      write(reply("")),
		"wrong nonce":    write(reply("codea1-XYZ [\"B\", \"\"]\ncodea1-XYZ [\"L\", \"\"]\ncodea1-XYZ [\"V\", \"1\"]\ncodea1-XYZ [\"E\", \"\"]\n")),
		"cut output": func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte(reply(nonceOf(r) + " [\"B\", \"\"]\n" + nonceOf(r) + " [\"L\"")))
		},
		"hangs up": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	}
	if !sandboxtest.Thorough { // the others fail in the same way as one of these
		maps.DeleteFunc(all, func(name string, _ http.HandlerFunc) bool {
			return !slices.Contains([]string{"500", "429", "refuses", "no JSON", "sandbox error", "no output", "cut output", "hangs up"}, name)
		})
	}
	return all
}

// TestRemoteProgramIsBlamed: a program with which the server fails each time, in any
// way, while it does other jobs, has crashed: it is not masked.
func TestRemoteProgramIsBlamed(t *testing.T) {
	t.Parallel()
	behind := Handler(openPool(t, sandbox.Config{Workers: 1, FileBytes: 16 << 20}), ServeLimits{})
	var fail atomic.Pointer[http.HandlerFunc]
	config := quick
	config.Retries = -1
	p := openOn(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var request RunCodeRequest
		if err := json.Unmarshal(body, &request); err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if strings.Contains(decodeSetup(t, request.Code), "evil") {
			(*fail.Load())(w, r)
			return
		}
		behind.ServeHTTP(w, r)
	}), config, hasty)
	for name, f := range misbehaviours() {
		if name == "refuses" || name == "429" || name == "503" {
			continue
		}
		fail.Store(&f)
		report, err := p.Run(t.Context(), sandbox.Program{Code: "evil = 5"}, []string{"evil"})
		if err != nil || report.Loads || !strings.Contains(report.LoadError, "took its answers away") {
			t.Errorf("%s: %+v, %v; want a verdict", name, report, err)
		}
	}
	if got := literal.Text(runOne(t, p, "x = 5", "x")); got != "5" {
		t.Errorf("got %s", got)
	}
}

// nonceOf reads the nonce of a request, as any server that runs it can.
func nonceOf(r *http.Request) string {
	var request RunCodeRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || len(request.FetchFiles) != 1 {
		return "no request"
	}
	return request.FetchFiles[0]
}

// TestRemoteFailureIsNoVerdict: a server that goes on failing makes a typed
// error, after as many tries as the pool has.
func TestRemoteFailureIsNoVerdict(t *testing.T) {
	t.Parallel()
	behind := Handler(openPool(t, sandbox.Config{Workers: 1, FileBytes: 16 << 20}), ServeLimits{})
	var fail atomic.Pointer[http.HandlerFunc]
	config := quick
	config.Retries = 1
	p := openOn(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := fail.Load(); f != nil {
			(*f)(w, r)
			return
		}
		behind.ServeHTTP(w, r)
	}), config, pace{pause: time.Millisecond, longest: 2 * time.Millisecond, patience: 10 * time.Millisecond, queue: time.Second})
	for name, f := range misbehaviours() {
		fail.Store(&f)
		report, err := p.Run(t.Context(), sandbox.Program{Code: "x = 5"}, []string{"x"})
		var failed *sandbox.Error
		if !errors.As(err, &failed) {
			t.Errorf("%s: %+v, %v; want a *sandbox.Error", name, report, err)
		}
		if name == "no output" && !strings.Contains(err.Error(), "command not found") {
			t.Errorf("it does not say what the server wrote: %v", err)
		}
		if refused := errors.Is(err, errRefused); refused != (name == "refuses") {
			t.Errorf("%s: refused %t: %v", name, refused, err)
		}
	}
}

// TestRemoteHang: a server that never answers is given up.
func TestRemoteHang(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-done:
		}
	})
	server := httptest.NewServer(handler)
	defer server.Close()
	defer close(done)
	config := sandbox.Config{Retries: -1, CallTimeout: time.Millisecond, JobTimeout: time.Millisecond}
	// No time is left to a request that may run for startSlack twice.
	_, err := openServer(t.Context(), server.URL, "", config, pace{queue: -2*startSlack + 50*time.Millisecond})
	var failed *sandbox.Error
	if !errors.As(err, &failed) {
		t.Errorf("got %v, want a *sandbox.Error", err)
	}
}

// TestRemoteHugeReply: a reply is not read beyond the limit. The program is blamed for
// it only where a harmless one gets an answer.
func TestRemoteHugeReply(t *testing.T) {
	t.Parallel()
	behind := Handler(openPool(t, sandbox.Config{Workers: 1, FileBytes: 16 << 20}), ServeLimits{})
	config := quick
	config.Retries = -1
	p := openOn(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request RunCodeRequest
		body := new(strings.Builder)
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&request); err != nil {
			t.Error(err)
		}
		if err := json.NewEncoder(body).Encode(request); err != nil {
			t.Error(err)
		}
		if strings.Contains(decodeSetup(t, request.Code), "huge") {
			chunk := []byte(strings.Repeat(" ", 1<<20))
			for range maxResponseBytes>>20 + 8 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
			return
		}
		copied, err := http.NewRequestWithContext(r.Context(), http.MethodPost, "/run_code", strings.NewReader(body.String()))
		if err != nil {
			t.Error(err)
		}
		copied.Host, copied.Header = r.Host, r.Header
		behind.ServeHTTP(w, copied)
	}), config, hasty)
	report, err := p.Run(t.Context(), sandbox.Program{Code: "huge = 1"}, []string{"huge"})
	if err != nil || report.Loads || !strings.Contains(report.LoadError, "took its answers away") {
		t.Errorf("got %+v, %v", report, err)
	}
	if got := literal.Text(runOne(t, p, "x = 5", "x")); got != "5" {
		t.Errorf("got %s", got)
	}
}

// decodeSetup returns the job in a request's code.
func decodeSetup(t *testing.T, code string) string {
	t.Helper()
	_, after, _ := strings.Cut(code, "\n\nmain(\"")
	encoded, _, _ := strings.Cut(after, "\"")
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}
