package events

// PlanOf returns the plan in a payload; false for payloads without one.
func PlanOf(p Payload) (Plan, bool) {
	switch p := p.(type) {
	case *ProblemPosed:
		return p.Plan, true
	case *CodeSampled:
		return p.Posed.Plan, true
	case *TestsSampled:
		return p.Posed.Plan, true
	case *CodeJudged:
		return p.Posed.Plan, true
	case *CodeExecuted:
		return p.Plan, true
	case *GroupRewarded:
		return p.Plan, true
	case *RewardShadowed:
		return p.Plan, true
	case *EvalScored:
		return p.Plan, true
	}
	return Plan{}, false
}
