package gpuworker

import "codea1/events"

// inputType returns the event type a role's sampling consumes.
func inputType(role events.Role) events.Type {
	if role == events.RoleCode {
		return events.TypeProblemPosed
	}
	return events.TypeCodeSampled
}

// outputType returns the event type a role's sampling makes.
func outputType(role events.Role) events.Type {
	if role == events.RoleCode {
		return events.TypeCodeSampled
	}
	return events.TypeTestsSampled
}
