package audit

import (
	"slices"

	"codea1/events"
	"codea1/replay/query"
)

// step is a training step that not every model was trained on.
type step struct {
	planned  int
	rewarded map[string]bool
	dropped  map[string]bool
	roles    int // roles that have trained it
}

// posed opens a group.
func (a *auditor) posed(group string, plan *events.Plan) {
	if group != plan.GroupID() {
		a.find("its plan is that of %s", plan.GroupID())
	}
	a.open[group] = *plan
	if plan.Purpose != events.PurposeTrain {
		return
	}
	a.stepOf(plan).planned = plan.Groups // a drop may not have set it
	if plan.Step <= a.models.Trained(a.trained) {
		a.find("posed for step %d, which every model was trained on", plan.Step)
	}
}

// checkPlan compares an event's plan with the one that its group was posed with.
func (a *auditor) checkPlan(e *events.Event) {
	plan, tells := events.PlanOf(e.Payload)
	if posed, open := a.open[e.Group]; tells && open && plan != posed {
		a.find("%v", query.ErrPlan)
	}
}

// stepOf returns the step of a plan.
func (a *auditor) stepOf(plan *events.Plan) *step {
	s := a.steps[plan.Step]
	if s == nil {
		s = &step{planned: plan.Groups, rewarded: make(map[string]bool), dropped: make(map[string]bool)}
		a.steps[plan.Step] = s
	}
	return s
}

// ended closes a group.
func (a *auditor) ended(group string, plan *events.Plan, rewarded bool) {
	posed, open := a.open[group]
	if !open {
		a.find("the group ends twice, or was never posed")
		return
	}
	delete(a.open, group)
	if posed.Purpose != plan.Purpose {
		a.find("posed to %s, ends as %s", posed.Purpose, plan.Purpose)
		return
	}
	switch {
	case plan.Purpose != events.PurposeTrain:
	case rewarded:
		a.stepOf(plan).rewarded[group] = true
	default:
		a.stepOf(plan).dropped[group] = true
	}
}

// dropped closes a group that was dropped.
func (a *auditor) dropped(group string, d *events.GroupDropped) {
	plan := events.Plan{Purpose: d.Purpose, Step: d.Step, Slot: d.Slot, Groups: d.Groups}
	// A group with an undecodable problem.posed event is not open here. A group
	// with a lineage conflict may have ended with the standing payloads.
	if _, open := a.open[group]; open || d.Reason != events.DropMalformed && d.Reason != events.DropLineage {
		a.ended(group, &plan, false)
		return
	}
	if d.Purpose == events.PurposeTrain && !a.stepOf(&plan).rewarded[group] {
		a.stepOf(&plan).dropped[group] = true
	}
}

// updated checks a policy version and the groups that it was trained on.
func (a *auditor) updated(u *events.PolicyUpdated) {
	a.report.Versions++
	if want := a.trained[u.Role] + 1; u.Version != want {
		a.find("%s v%d follows v%d", u.Role, u.Version, want-1)
	}
	a.trained[u.Role] = u.Version
	s := a.steps[u.Step]
	if s == nil {
		if len(u.Groups) > 0 {
			a.find("%s v%d trained on step %d, which has no groups or was trained before", u.Role, u.Version, u.Step)
		}
		return
	}
	if !slices.IsSorted(u.Groups) {
		a.find("%s v%d did not take its groups in canonical order", u.Role, u.Version)
	}
	seen := make(map[string]bool)
	for _, group := range u.Groups {
		switch {
		case seen[group]:
			a.find("%s v%d trained twice on group %s", u.Role, u.Version, group)
		case !s.rewarded[group]:
			a.find("%s v%d trained on group %s, which step %d had not rewarded", u.Role, u.Version, group, u.Step)
		}
		seen[group] = true
	}
	for _, group := range u.Dropped {
		if seen[group] {
			a.find("%s v%d trained on group %s and left it out", u.Role, u.Version, group)
		}
		seen[group] = true
	}
	if len(seen) != s.planned {
		a.find("%s v%d accounts for %d of the %d groups of step %d", u.Role, u.Version, len(seen), s.planned, u.Step)
	}
	// No event of a step can follow when every model was trained on it.
	if s.roles++; s.roles == len(a.models.TrainedRoles()) {
		delete(a.steps, u.Step)
	}
}

// end checks the end of the log.
func (a *auditor) end() {
	a.at = nil
	a.report.Open = len(a.open)
	if a.completed && len(a.open) > 0 {
		a.find("the run is completed, but %d of its groups have not ended, among them %s", len(a.open), firstOf(a.open))
	}
	roles := a.models.TrainedRoles()
	for _, role := range roles[1:] {
		if first, own := a.trained[roles[0]], a.trained[role]; a.completed && own != first {
			a.find("the run is completed with %s v%d and %s v%d", roles[0], first, role, own)
		}
	}
}

func firstOf(groups map[string]events.Plan) string {
	least := ""
	for g := range groups {
		if least == "" || g < least {
			least = g
		}
	}
	return least
}
