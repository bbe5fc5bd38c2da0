package dashboard

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"codea1/events"
)

// serve returns a server of f on a free port, which ends with the test, and a
// function that ends it earlier.
func serve(t testing.TB, f *Follower) (server *Server, stop func()) {
	t.Helper()
	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "sample_total", Help: "A sample."})
	registry.MustRegister(counter)
	counter.Add(3)
	server, err := Listen(t.Context(), "127.0.0.1:0", f, nil, registry)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	}
	t.Cleanup(stop)
	return server, stop
}

// client keeps no idle connections after a request.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func request(t testing.TB, url string) (status int, body string, header http.Header) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longEnough)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(data), response.Header
}

func TestServerShowsTheRun(t *testing.T) {
	f := NewFollower()
	s := &script{at: noon.Add(time.Minute)}
	applyTo(t, f, append(start(), s.scored("after", 2, 0, 1, events.EvalScored{
		Suites: 4, Wanted: 16, Stated: 10, Right: 4, Defective: 4, Found: 1, Inputs: &events.InputCounts{Kept: 8, Trivial: 2, Reached: 3},
	}))...)
	measured := s.updated(events.RoleTest, 2)
	measured.Payload.(*events.PolicyUpdated).Metrics.Mismatch = &events.Mismatch{KL: 0.25}
	applyTo(t, f, measured)
	// A publisher can write any bytes as a reason.
	applyTo(t, f, s.dropped(events.PurposeEval, "e-after-0001", 2, 1, 2, "\xff\n"))
	server, _ := serve(t, f)

	status, body, header := request(t, server.URL())
	if status != http.StatusOK || !strings.Contains(body, "app.js") || !strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("/: status %d, headers %v", status, header)
	}
	for _, file := range []string{"app.js", "lib.js", "style.css", "uPlot.iife.min.js", "uPlot.min.css", "icon.svg"} {
		if status, body, _ := request(t, server.URL()+file); status != http.StatusOK || body == "" {
			t.Errorf("/%s: status %d, %d bytes", file, status, len(body))
		}
	}

	status, body, _ = request(t, server.URL()+"api/state")
	var got Snapshot
	if err := json.Unmarshal([]byte(body), &got); err != nil || status != http.StatusOK {
		t.Fatalf("/api/state: status %d, %v", status, err)
	}
	if got.Run != "r1" || got.Step != 2 || got.Book["size"] != 1.0 || !cmp.Equal(got.Series["step"], []any{1.0, 2.0}) {
		t.Errorf("/api/state: %+v", got)
	}

	_, body, _ = request(t, server.URL()+"metrics")
	for _, want := range []string{
		"sample_total 3\n",
		`codea1_evaluation_validity{run="r1",step="2",tag="after"} 0.4` + "\n",
		`codea1_evaluation_defect_finding{run="r1",step="2",tag="after"} 0.25` + "\n",
		`codea1_evaluation_reach{run="r1",step="2",tag="after"} 0.75` + "\n",
		`codea1_evaluation_trivial_inputs{run="r1",step="2",tag="after"} 0.25` + "\n",
		`codea1_training_step{run="r1"} `, `codea1_mistake_book_tests{run="r1"} 1` + "\n", `codea1_groups_dropped_total{reason="?\n",run="r1"} 1`,
		`codea1_policy_version{role="code",run="r1"} 1` + "\n", `codea1_policy_reward{role="test",run="r1"} `, `codea1_policy_loss{`, `codea1_policy_kl{`, `codea1_policy_entropy{`,
		`codea1_policy_mismatch_kl{role="test",run="r1"} 0.25` + "\n",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	if problems, err := promlint.New(strings.NewReader(body)).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %+v, %v", problems, err)
	}
	if strings.Contains(body, "codea1_evaluation_avg{") {
		t.Error("/metrics has an avg@k of an evaluation without answers")
	}
	if status, _, _ := request(t, server.URL()+"nothing"); status != http.StatusNotFound {
		t.Errorf("/nothing: status %d", status)
	}
}

func TestHealthFollowsTheFollower(t *testing.T) {
	f := NewFollower()
	server, _ := serve(t, f)
	for _, want := range []int{http.StatusServiceUnavailable, http.StatusOK} {
		if status, _, _ := request(t, server.URL()+"healthz"); status != want {
			t.Errorf("have status %d, want %d", status, want)
		}
		f.setFollowing(true, nil)
	}
}

// stream opens /events; next returns the next snapshot, or false at its end.
func stream(t testing.TB, server *Server) (next func() (Snapshot, bool)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), longEnough)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL()+"events", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("/events: %s, %v", response.Status, response.Header)
	}
	lines := bufio.NewReader(response.Body)
	return func() (s Snapshot, ok bool) {
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return s, false
			}
			if data, found := strings.CutPrefix(line, "data: "); found {
				if err := json.Unmarshal([]byte(data), &s); err != nil {
					t.Fatalf("event data: %v", err)
				}
				return s, true
			}
		}
	}
}

func TestEventsStreamsTheStateAsItChanges(t *testing.T) {
	f := NewFollower()
	server, stop := serve(t, f)
	next := stream(t, server)
	if s, ok := next(); !ok || s.Run != "" || s.Phase != PhaseStarting {
		t.Fatalf("at first: %v %+v", ok, s)
	}
	applyTo(t, f, start()...)
	for {
		s, ok := next()
		if !ok {
			t.Fatal("the stream ended before the newest state")
		}
		if s.EventCount == 4 {
			break
		}
	}
	// The last state reaches the page although the server ends at once.
	applyTo(t, f, (&script{at: noon.Add(time.Minute)}).finished(1, events.RunStopped))
	stop() // returns with an open stream
	var last Snapshot
	for {
		s, ok := next()
		if !ok {
			break
		}
		last = s
	}
	if last.Phase != PhaseFinished || last.EventCount != 5 {
		t.Errorf("the last state is %s after %d events", last.Phase, last.EventCount)
	}
}

func TestStreamsAreBounded(t *testing.T) {
	f := NewFollower()
	server, _ := serve(t, f)
	for range maxStreams {
		if _, ok := stream(t, server)(); !ok {
			t.Fatal("a stream ended")
		}
	}
	status, body, header := request(t, server.URL()+"events")
	if status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
		t.Errorf("one more: status %d, %s", status, body)
	}
}

func TestAPortInUseIsOneSentence(t *testing.T) {
	server, _ := serve(t, NewFollower())
	address := server.listener.Addr().String()
	_, err := Listen(t.Context(), address, NewFollower(), nil, prometheus.NewRegistry())
	if !errors.Is(err, ErrPortInUse) {
		t.Fatalf("have %v, want %v", err, ErrPortInUse)
	}
	for _, want := range []string{address, addressFlag} {
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q does not name %s in one line", err, want)
		}
	}
}

func TestInvalidAddress(t *testing.T) {
	_, err := Listen(t.Context(), "nowhere", NewFollower(), nil, prometheus.NewRegistry())
	if err == nil || !strings.Contains(err.Error(), "nowhere") || !strings.Contains(err.Error(), addressFlag) {
		t.Errorf("have %v", err)
	}
}

// TestDefaultAddressMayBeTaken checks that two runs on one machine have a page
// each.
func TestDefaultAddressMayBeTaken(t *testing.T) {
	for range 2 {
		server, err := Listen(t.Context(), "", NewFollower(), nil, prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(server.URL(), "http://127.0.0.1:") {
			t.Errorf("listens on %s", server.URL())
		}
		defer server.Close()
	}
}

func TestLoopbackAnswersToItsOwnNamesOnly(t *testing.T) {
	server, _ := serve(t, NewFollower())
	for host, want := range map[string]int{
		"localhost": 200, "localhost:7070": 200, "127.0.0.1:1": 200, "[::1]:7070": 200,
		"evil.example": 403, "localhost.evil.example:7070": 403, "10.0.0.1": 403,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL()+"api/state", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("host %s: status %d, want %d", host, response.StatusCode, want)
		}
	}
}

func TestServerAnswersOnlyToGet(t *testing.T) {
	server, _ := serve(t, NewFollower())
	response, err := client.Post(server.URL()+"api/state", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: status %d", response.StatusCode)
	}
}

// TestFlagTags compares struct tags, which cannot name constants, with them.
func TestFlagTags(t *testing.T) {
	field, _ := reflect.TypeFor[Flags]().FieldByName("Address")
	if "--"+field.Tag.Get("name") != addressFlag || !strings.Contains(field.Tag.Get("help"), DefaultAddress) {
		t.Errorf("the flag's tag is %s", field.Tag)
	}
}

// TestVendoredFiles checks the sums of page/VENDOR, and that no file is missing
// from its list.
func TestVendoredFiles(t *testing.T) {
	list, err := os.ReadFile("page/VENDOR")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for line := range strings.Lines(string(list)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] != "#" {
			listed[f[1]] = f[0]
		}
	}
	files, err := filepath.Glob("page/uPlot*")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		if got, want := hex.EncodeToString(sum[:]), listed[filepath.Base(file)]; got != want {
			t.Errorf("%s: sha256 %s, VENDOR says %q", file, got, want)
		}
	}
	if len(files) != len(listed) {
		t.Errorf("VENDOR lists %d files, there are %d", len(listed), len(files))
	}
}

// TestPageIsSmall bounds what a browser loads before the data.
func TestPageIsSmall(t *testing.T) {
	server, _ := serve(t, NewFollower())
	_, index, _ := request(t, server.URL())
	size := len(index)
	for _, element := range []*regexp.Regexp{styleElement, scriptElement} {
		for _, file := range element.FindAllStringSubmatch(index, -1) {
			status, body, _ := request(t, server.URL()+file[1])
			if status != http.StatusOK {
				t.Errorf("/%s: status %d", file[1], status)
			}
			size += len(body)
		}
	}
	if size < 100<<10 || size > 200<<10 {
		t.Errorf("the page has %d bytes", size)
	}
}
