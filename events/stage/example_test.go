package stage_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"codea1/events"
	"codea1/events/stage"
)

func Example() {
	// A worker turns each problem.posed into the events that its function
	// returns.
	config := stage.Config{
		Run:   "r1",
		Name:  "generation",
		Types: []events.Type{events.TypeProblemPosed},
		Handler: stage.Each(func(ctx context.Context, e *events.Event) ([]*events.Event, error) {
			posed := e.Payload.(*events.ProblemPosed)
			if posed.Plan.CodeVersion > 3 {
				return nil, stage.Snooze(time.Second) // the weights are not loaded yet
			}
			return nil, stage.Drop(events.DropStale, "version 4 is training already")
		}),
		Logger: slog.Default(),
	}
	_, err := stage.New(config)
	fmt.Println(err)
	// Output: stage generation: needs a bus and a handler
}
