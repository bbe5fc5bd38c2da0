package stage_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v4"

	"codea1/events"
	"codea1/events/eventstest"
	"codea1/events/natsbus"
	"codea1/events/natsbus/natstest"
	"codea1/events/stage"
)

// SCALING.md lists exactly the metrics of a stage.
func TestScalingDocument(t *testing.T) {
	text, err := os.ReadFile("SCALING.md")
	if err != nil {
		t.Fatal(err)
	}
	bus, registry := natstest.Bus(t), prometheus.NewRegistry()
	c := config(bus, stage.Each(func(ctx context.Context, e *events.Event) ([]*events.Event, error) {
		switch e.Payload.(*events.ProblemPosed).Plan.Slot {
		case 0:
			return nil, stage.Drop(events.DropStale, "too old")
		case 1:
			return nil, errors.New("no luck")
		}
		return answer(ctx, e)
	}))
	c.Registerer, c.MaxTries = registry, 1
	start(t, c)
	post(t, bus, 3)
	collect(t, bus, 3, events.TypeCodeSampled, events.TypeGroupDropped)
	kinds := map[string]string{}
	eventually(t, "every metric has a value", func() bool {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			kinds[f.GetName()] = strings.ToLower(f.GetType().String())
		}
		return kinds["codea1_stage_lag_events"] != ""
	})
	kinds["codea1_stage_bus_errors_total"] = "counter" // has no value as long as the bus works

	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(codea1_stage_\\w+)` \\| (\\w+) \\|").FindAllStringSubmatch(string(text), -1) {
		documented[row[1]] = row[2]
	}
	if d := cmp.Diff(kinds, documented); d != "" {
		t.Errorf("the table of SCALING.md (-registry +document):\n%s", d)
	}
	names := slices.Collect(maps.Keys(kinds))
	for name, kind := range kinds {
		if kind == "histogram" {
			names = append(names, name+"_sum", name+"_count")
		}
	}
	for _, name := range regexp.MustCompile(`codea1_stage_\w+`).FindAllString(string(text), -1) {
		if !slices.Contains(names, name) {
			t.Errorf("SCALING.md names %s, which no stage has", name)
		}
	}
}

// The examples of SCALING.md are valid YAML, and their NATS names are right.
func TestScalingExamples(t *testing.T) {
	text, err := os.ReadFile("SCALING.md")
	if err != nil {
		t.Fatal(err)
	}
	type scaledObject struct {
		Kind string
		Spec struct {
			Triggers []struct {
				Type     string
				Metadata map[string]string
			}
		}
	}
	triggers := map[string]map[string]string{}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		var o scaledObject
		if err := yaml.Unmarshal([]byte(block[1]), &o); err != nil {
			t.Fatalf("%v in\n%s", err, block[1])
		}
		if o.Kind != "ScaledObject" || len(o.Spec.Triggers) == 0 {
			t.Fatalf("not a ScaledObject with triggers: %+v", o)
		}
		for _, trigger := range o.Spec.Triggers {
			triggers[trigger.Type] = trigger.Metadata
		}
	}
	if !strings.Contains(triggers["prometheus"]["query"], "codea1_stage_lag_events") {
		t.Errorf("query %q", triggers["prometheus"]["query"])
	}

	server := natstest.Start(t)
	bus := server.Connect(t, natsbus.Config{})
	c := config(bus, stage.Each(answer))
	c.Run, c.Name = "demo", "execution"
	if err := bus.Publish(bounded(t), eventstest.Encode(eventstest.Posed(c.Run, 1, 0))); err != nil {
		t.Fatal(err)
	}
	start(t, c)
	conn, err := nats.Connect(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	of := triggers["nats-jetstream"]
	eventually(t, "stream and consumer are there, and the event is handled", func() bool {
		consumer, err := js.Consumer(bounded(t), of["stream"], of["consumer"])
		return err == nil && consumer.CachedInfo().AckFloor.Consumer == 1
	})
}
