package openai_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"codea1/events"
	"codea1/gpuworker"
	"codea1/gpuworker/openai"
	"codea1/gpuworker/openai/openaitest"
	"codea1/gpuworker/tiny"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-a-secret-key"

// embedded opens the embedded Code LLM once. It only samples, and needs no end.
var embedded = sync.OnceValues(func() (*tiny.Engine, error) {
	files, err := tiny.Checkpoint(string(events.RoleCode))
	if err != nil {
		return nil, err
	}
	return tiny.OpenFS(files)
})

// model returns the model behind the servers.
func model(t *testing.T) *tiny.Engine {
	t.Helper()
	engine, err := embedded()
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// open serves a small model and returns it with a sampler of the server.
func open(t *testing.T, change func(*openaitest.Server, *openai.Options)) (*tiny.Engine, *openai.Sampler) {
	t.Helper()
	engine := model(t)
	server := &openaitest.Server{Sampler: engine, Model: "small"}
	options := openai.Options{Model: "small", Requests: 4, Backoff: time.Millisecond}
	if change != nil {
		change(server, &options)
	}
	listening := httptest.NewServer(server)
	options.URL = listening.URL + "/v1"
	sampler, err := openai.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sampler.Close(); listening.Close() })
	return engine, sampler
}

var question = []gpuworker.Message{{Role: "user", Content: "Return the sum of a list of numbers."}}

func params(tokens int) gpuworker.SamplingParams {
	return gpuworker.SamplingParams{Temperature: 1, TopP: 1, MaxTokens: tokens}
}

func ask(seeds ...uint64) []gpuworker.SampleRequest {
	for i := range seeds {
		seeds[i] <<= 33 // a server gets the highest bits
	}
	return []gpuworker.SampleRequest{{Messages: question, Seeds: seeds}}
}

// The completions of a server are those of the model behind it, with the token ids and
// log-probs that the model computes, for both kinds of prompt.
func TestSamplesAreThoseOfTheModel(t *testing.T) {
	for _, completions := range []bool{false, true} {
		engine, sampler := open(t, func(_ *openaitest.Server, o *openai.Options) { o.LogProbs, o.Completions = true, completions })
		if err := sampler.Probe(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := sampler.Sample(t.Context(), ask(5, 6, 7), params(12))
		if err != nil {
			t.Fatal(err)
		}
		prompt, err := engine.EncodePrompt(question)
		if err != nil {
			t.Fatal(err)
		}
		want, err := engine.Sample(t.Context(), []gpuworker.SampleRequest{{Prompt: prompt, Seeds: []uint64{5, 6, 7}}}, params(12))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("completions %v: the server (+) and its model differ:\n%s", completions, d)
		}
		for _, c := range got[0] {
			scored, err := engine.LogProbs(t.Context(), gpuworker.Current, []gpuworker.Sequence{{Prompt: prompt, Tokens: c.Tokens}}, 1)
			if err != nil {
				t.Fatal(err)
			}
			for i, p := range c.LogProbs {
				if math.Abs(float64(p-scored[0][i])) > 1e-4 {
					t.Errorf("token %d: log-prob %g of the server, %g of the learner", i, p, scored[0][i])
				}
			}
		}
	}
}

// fault answers one request wrongly.
type fault func(w http.ResponseWriter, r *http.Request)

func status(code int, header ...string) fault {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		fmt.Fprint(w, "no")
	}
}

func body(text string) fault {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
}

// A failure that a repetition can cure costs no completion, and the log says it once.
func TestFailuresAreRepeated(t *testing.T) {
	_, undisturbed := open(t, nil)
	want, err := undisturbed.Sample(t.Context(), ask(1, 2, 3, 4, 5, 6), params(8))
	if err != nil {
		t.Fatal(err)
	}
	cut := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, `{"choices": [`)
	}
	closed := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	faults := []fault{
		status(429, "Retry-After", "0.01"), status(500), cut, closed, status(503, "Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT"),
		status(401), status(404), body("<html>soon</html>"), status(408), closed, status(429), status(502),
	}
	var log bytes.Buffer
	server := (*openaitest.Server)(nil)
	_, sampler := open(t, func(s *openaitest.Server, o *openai.Options) {
		server = s
		s.Fault = func(n int64, w http.ResponseWriter, r *http.Request) bool {
			if n > int64(len(faults)) {
				return false
			}
			faults[n-1](w, r)
			return true
		}
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	got, err := sampler.Sample(t.Context(), ask(1, 2, 3, 4, 5, 6), params(8))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the failures changed the completions:\n%s", d)
	}
	if n := server.Requests(); n != int64(len(faults)+6) {
		t.Errorf("%d requests, want one for each of 6 completions and %d failures", n, len(faults))
	}
	if text := log.String(); !strings.Contains(text, "the model server does not answer as it should") || !strings.Contains(text, "the model server answers again") {
		t.Errorf("the log:\n%s", text)
	}
}

// An answer that no repetition can cure is an error, and soon. It shows at most a part of the
// answer, and never the key.
func TestAnswersThatCannotBeUsed(t *testing.T) {
	choice := func(rest string) fault {
		return body(`{"choices": [{"message": {"content": "x"}, "finish_reason": "stop"` + rest + `}]}`)
	}
	ids := func(ids, logProbs string) fault {
		return choice(`, "token_ids": ` + ids + `, "logprobs": {"content": ` + logProbs + `}`)
	}
	for name, c := range map[string]struct {
		fault fault
		is    error
		says  string
	}{
		"refused": {status(400), openai.ErrRefused, "400 Bad Request"},
		"too long": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, "context_length_exceeded")
		}, gpuworker.ErrPromptTooLong, ""},
		"the key, repeated": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, r.Header)
		}, openai.ErrRefused, "***"},
		"always 500":      {status(500), openai.ErrRefused, "500"},
		"redirect":        {status(307, "Location", "http://other.invalid/v1"), openai.ErrRefused, "set --server to the final address"},
		"no JSON":         {body("\x00\xff" + strings.Repeat("x", 5000)), openai.ErrProtocol, "it begins with"},
		"no choice":       {body(`{"choices": []}`), openai.ErrProtocol, "0 choices"},
		"two choices":     {body(`{"choices": [{"finish_reason": "stop"}, {"finish_reason": "stop"}]}`), openai.ErrProtocol, "2 choices"},
		"no end":          {body(`{"choices": [{}]}`), openai.ErrProtocol, "no finish_reason"},
		"no ids":          {choice(""), openai.ErrProtocol, "--server-log-probs needs a server with both"},
		"counts differ":   {ids("[1, 2]", `[{"logprob": -1}]`), openai.ErrProtocol, "2 token ids and 1 log-probs"},
		"more than asked": {ids("[1, 2, 3, 4, 5]", `[{"logprob": -1}, {"logprob": -1}, {"logprob": -1}, {"logprob": -1}, {"logprob": -1}]`), openai.ErrProtocol, "at most 4 tokens"},
		"NaN":             {ids("[1]", `[{"logprob": NaN}]`), openai.ErrProtocol, "invalid character"},
		"null":            {ids("[1]", `[{"logprob": null}]`), openai.ErrProtocol, "no log-prob"},
		"infinite":        {ids("[1]", `[{"logprob": -1e999}]`), openai.ErrProtocol, "1e999"},
		"a probability":   {ids("[1]", `[{"logprob": 0.5}]`), openai.ErrProtocol, "no log-prob of at most 0"},
		"negative id":     {ids("[-1]", `[{"logprob": -1}]`), openai.ErrProtocol, "with the id -1"},
		"huge text":       {body(`{"choices": [{"text": "` + strings.Repeat("x", events.MaxTextBytes+1) + `", "finish_reason": "stop"}]}`), openai.ErrProtocol, "its text has"},
		"endless": {func(w http.ResponseWriter, _ *http.Request) {
			for line := bytes.Repeat([]byte(" "), 1<<16); ; {
				if _, err := w.Write(line); err != nil {
					return
				}
			}
		}, openai.ErrProtocol, "it has more than"},
		"deep": {body(strings.Repeat("[", 100_000)), openai.ErrProtocol, "max depth"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			_, sampler := open(t, func(s *openaitest.Server, o *openai.Options) {
				s.Fault = func(_ int64, w http.ResponseWriter, r *http.Request) bool { c.fault(w, r); return true }
				o.LogProbs, o.KeyFile, o.Logger = true, file, slog.New(slog.NewTextHandler(&log, nil))
			})
			_, err := sampler.Sample(t.Context(), ask(1), params(4))
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 2000 {
				t.Errorf("%v, want %v: %s", err, c.is, c.says)
			}
			if both := err.Error() + log.String(); strings.Contains(both, key) {
				t.Errorf("the key is in an error or the log: %s", both)
			}
		})
	}
}

// Invalid UTF-8 in a text is replaced: events hold valid text only.
func TestInvalidUTF8IsReplaced(t *testing.T) {
	_, sampler := open(t, func(s *openaitest.Server, _ *openai.Options) {
		s.Fault = func(_ int64, w http.ResponseWriter, r *http.Request) bool {
			body("{\"choices\": [{\"text\": \"a\xff\", \"finish_reason\": \"length\"}]}")(w, r)
			return true
		}
	})
	got, err := sampler.Sample(t.Context(), ask(1), params(4))
	want := [][]events.Completion{{{Text: "a\uFFFD", Finish: events.FinishLength}}}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
}

// No more requests than allowed run at the same time, and a cancelled call ends while
// the server is silent.
func TestConcurrencyAndCancelling(t *testing.T) {
	reached := make(chan struct{})
	_, sampler := open(t, func(s *openaitest.Server, o *openai.Options) {
		s.Fault = func(n int64, _ http.ResponseWriter, r *http.Request) bool {
			switch {
			case n == 3:
				close(reached)
			case n > 3:
				t.Errorf("request %d while 3 run", n)
			}
			io.Copy(io.Discard, r.Body) // the server notices the end of the client only afterwards
			<-r.Context().Done()
			return true
		}
		o.Requests = 3
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { <-reached; cancel() }()
	if _, err := sampler.Sample(ctx, ask(1, 2, 3, 4, 5, 6, 7, 8), params(4)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A silent server is left after the timeout.
func TestSilentServer(t *testing.T) {
	_, sampler := open(t, func(s *openaitest.Server, o *openai.Options) {
		s.Fault = func(_ int64, w http.ResponseWriter, r *http.Request) bool {
			io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return true
		}
		o.Timeout = 20 * time.Millisecond
	})
	if _, err := sampler.Sample(t.Context(), ask(1), params(4)); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// The probe refuses mistakes that a user can correct, at once.
func TestProbe(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*openaitest.Server, *openai.Options)
		says   string // empty: no error
	}{
		"works":       {func(*openaitest.Server, *openai.Options) {}, ""},
		"other model": {func(s *openaitest.Server, _ *openai.Options) { s.Model = "other" }, "the model small does not exist"},
		"no key":      {func(s *openaitest.Server, _ *openai.Options) { s.Key = key }, "the API key is wrong"},
		"busy": {func(s *openaitest.Server, _ *openai.Options) {
			s.Fault = func(_ int64, w http.ResponseWriter, r *http.Request) bool { status(503)(w, r); return true }
		}, ""},
	} {
		_, sampler := open(t, c.change)
		err := sampler.Probe(t.Context())
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	closed := httptest.NewServer(nil)
	closed.Close()
	sampler, err := openai.New(openai.Options{URL: closed.URL + "/v1", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if err := sampler.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), closed.URL) {
		t.Errorf("no server: %v", err)
	}
}

// A server of TLS works with its own authority only.
func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(&openaitest.Server{Sampler: model(t), Model: "small"})
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	defer server.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for ca, works := range map[string]bool{"": false, file: true} {
		sampler, err := openai.New(openai.Options{URL: server.URL + "/v1", Model: "small", CAFile: ca})
		if err != nil {
			t.Fatal(err)
		}
		if err := sampler.Probe(t.Context()); (err == nil) != works {
			t.Errorf("authorities %q: %v", ca, err)
		}
		sampler.Close()
	}
}
