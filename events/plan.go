package events

// PlanOf returns the plan of the group a payload belongs to; false for events
// that are not about a group on its way through the pipeline.
func PlanOf(p Payload) (Plan, bool) {
	switch p := p.(type) {
	case *ProblemPosed:
		return p.Plan, true
	case *CodeSampled:
		return p.Posed.Plan, true
	case *TestsSampled:
		return p.Posed.Plan, true
	case *CodeExecuted:
		return p.Plan, true
	case *GroupRewarded:
		return p.Plan, true
	case *EvalScored:
		return p.Plan, true
	}
	return Plan{}, false
}
