package gpuworker

import "codea1/events"

// inputType returns the event type a role's sampling consumes.
func inputType(role events.Role) events.Type { return events.RolloutStage(role).Consumes[0] }

// outputType returns the event type a role's sampling makes.
func outputType(role events.Role) events.Type { return events.RolloutStage(role).Makes[0] }
