package outbox_test

import (
	"context"
	"fmt"
	"os"

	"codea1/events"
	"codea1/events/eventstest"
	"codea1/events/outbox"
	"codea1/events/stage"
)

// The handler of a stage runs once for an event. A redelivery gets the stored
// output.
func ExampleHandler() {
	dir, err := os.MkdirTemp("", "outbox")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	box, err := outbox.Open(dir, outbox.Options{})
	if err != nil {
		panic(err)
	}
	defer box.Close()
	sample := stage.Each(func(_ context.Context, e *events.Event) ([]*events.Event, error) {
		fmt.Println("sample", e.Group)
		return []*events.Event{eventstest.CodeSampled(e)}, nil
	})
	handle := outbox.Handler(box, events.TypeCodeSampled, sample)
	m := eventstest.Encode(eventstest.Posed("r1", 1, 7))
	for range 2 {
		e, err := m.Decode()
		if err != nil {
			panic(err)
		}
		result := handle(context.Background(), []*events.Event{e})[0]
		fmt.Println("publish", result.Events[0].Type, result.Events[0].Group)
	}
	// Output:
	// sample s000001-q0007
	// publish code.sampled s000001-q0007
	// publish code.sampled s000001-q0007
}
