package track

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"codea1/events"
)

// A collector gets one trace for a group: each stage's span follows that of the stage
// before it.
func TestTraceOfAGroup(t *testing.T) {
	var mu sync.Mutex
	var got []*spans.Span
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && r.Header.Get("Content-Encoding") == "gzip" {
			var z *gzip.Reader
			if z, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
				body, err = io.ReadAll(z)
			}
		}
		var request collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &request)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL, err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, of := range request.ResourceSpans {
			for _, scope := range of.ScopeSpans {
				got = append(got, scope.Spans...)
			}
		}
	}))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)

	at := noon
	posed := events.New("r1", "s000001-q0000", "curriculum-0", at, &events.ProblemPosed{Plan: events.Plan{Purpose: events.PurposeTrain, Step: 1}})
	chain := []*events.Event{posed}
	for _, p := range []events.Payload{&events.CodeSampled{}, &events.TestsSampled{}, &events.CodeExecuted{}, &events.GroupRewarded{}} {
		at = at.Add(2 * time.Second)
		chain = append(chain, events.Caused(chain[len(chain)-1], "stage-0", at, p))
	}
	tracker, err := New([]string{"otlp"}, t.TempDir(), "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	tracker.Apply(history()[0]) // run.started
	for _, e := range chain {
		tracker.trace(e)
	}
	if err := tracker.Close(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	got = got[len(got)-len(chain):]
	for i, span := range got {
		e := chain[i]
		if span.Name != string(e.Type) || hex.EncodeToString(span.SpanId) != e.ID[:16] || hex.EncodeToString(span.TraceId) != e.TraceParent[3:35] {
			t.Errorf("span %d of event %s: %v", i, e.ID, span)
		}
		if i == 0 {
			continue
		}
		if hex.EncodeToString(span.ParentSpanId) != chain[i-1].ID[:16] || !bytes.Equal(span.TraceId, got[0].TraceId) {
			t.Errorf("span %s does not follow %s", span.Name, got[i-1].Name)
		}
		if took := time.Duration(span.EndTimeUnixNano - span.StartTimeUnixNano); took != 2*time.Second {
			t.Errorf("span %s took %v, want 2 s", span.Name, took)
		}
	}

	// Without a collector the tool fails, and says so.
	server.Close()
	lost := tracked(t, t.TempDir(), "", "otlp")
	if lost == nil || !strings.HasPrefix(lost.Error(), "otlp: ") {
		t.Errorf("without a collector: %v", lost)
	}
}
