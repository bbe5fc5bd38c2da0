package eventstest

import (
	"slices"

	"codea1/events"
)

// Publishes returns the types of the events that the process of a stage publishes.
func Publishes(s events.Stage) []events.Type {
	var made []events.Type
	for _, in := range events.Stages {
		if in.Name == s.Name || in.Within == s.Name {
			made = append(made, in.Makes...)
		}
	}
	if s.Kind == events.Worker && !s.Optional {
		made = append(made, events.TypeGroupDropped)
	}
	if len(made) > 0 { // the dashboard only reads
		made = append(made, events.TypeStageHeartbeat)
	}
	slices.Sort(made)
	return slices.Compact(made)
}
