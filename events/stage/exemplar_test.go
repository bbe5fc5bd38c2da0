package stage_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"codea1/events"
	"codea1/events/eventstest"
	"codea1/events/natsbus/natstest"
	"codea1/events/stage"
)

// A scraper that asks for OpenMetrics gets the trace of a group as the exemplar of the
// time of its batch. A trace context that is none, as a publisher may write, has none.
func TestExemplars(t *testing.T) {
	bus, registry, ctx := natstest.Bus(t), prometheus.NewRegistry(), bounded(t)
	c := config(bus, stage.Each(answer))
	c.Registerer, c.Batch, c.Concurrency = registry, 1, 1
	good, bad := eventstest.Encode(eventstest.Posed(run, 1, 0)), eventstest.Encode(eventstest.Posed(run, 1, 1))
	bad.TraceParent = "00-" + strings.Repeat("z", 100)
	for _, m := range []events.Message{good, bad} {
		if err := bus.Publish(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	stop := start(t, c)
	collect(t, bus, 2, events.TypeCodeSampled)
	settled(t, bus)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	p, _ := probe(t, registry)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Address()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if want := `# {trace_id="` + good.TraceParent[3:35] + `"} `; strings.Count(string(body), want) != 1 || strings.Count(string(body), "trace_id") != 1 {
		t.Errorf("want one exemplar, %s:\n%s", want, body)
	}
	if !strings.Contains(string(body), `codea1_stage_batch_duration_seconds_count{stage="worker"} 2`) {
		t.Errorf("want two batches:\n%s", body)
	}
}
