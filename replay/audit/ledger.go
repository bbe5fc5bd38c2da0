package audit

import (
	"slices"

	"codea1/events"
	"codea1/replay/query"
)

// stepLedger is a training step on its way.
type stepLedger struct {
	planned  int
	rewarded map[string]bool
	dropped  map[string]bool
	roles    int // that have trained it
}

func (h *historian) posed(group string, plan *events.Plan) {
	if group != plan.GroupID() {
		h.find("its plan is that of %s", plan.GroupID())
	}
	h.open[group] = *plan
	if plan.Purpose != events.PurposeTrain {
		return
	}
	h.step(plan).planned = plan.Groups // a drop may not have known
	if plan.Step <= min(h.trained[events.RoleCode], h.trained[events.RoleTest]) {
		h.find("posed for step %d, which both roles have trained", plan.Step)
	}
}

// checkPlan holds what is told of an open group to how it was posed.
func (h *historian) checkPlan(e *events.Event) {
	plan, tells := events.PlanOf(e.Payload)
	if posed, open := h.open[e.Group]; tells && open && plan != posed {
		h.find("%v", query.ErrPlan)
	}
}

func (h *historian) step(plan *events.Plan) *stepLedger {
	s := h.steps[plan.Step]
	if s == nil {
		s = &stepLedger{planned: plan.Groups, rewarded: make(map[string]bool), dropped: make(map[string]bool)}
		h.steps[plan.Step] = s
	}
	return s
}

func (h *historian) ended(group string, plan *events.Plan, rewarded bool) {
	posed, open := h.open[group]
	if !open {
		h.find("the group ends twice, or was never posed")
		return
	}
	delete(h.open, group)
	if posed.Purpose != plan.Purpose {
		h.find("posed to %s, ends as %s", posed.Purpose, plan.Purpose)
		return
	}
	switch {
	case plan.Purpose != events.PurposeTrain:
	case rewarded:
		h.step(plan).rewarded[group] = true
	default:
		h.step(plan).dropped[group] = true
	}
}

func (h *historian) dropped(group string, d *events.GroupDropped) {
	plan := events.Plan{Purpose: d.Purpose, Step: d.Step, Slot: d.Slot, Groups: d.Groups}
	// A group whose problem.posed nobody can read was never posed here, and one
	// whose lineage parted may have ended on the way that stands.
	if _, open := h.open[group]; open || d.Reason != events.DropMalformed && d.Reason != events.DropLineage {
		h.ended(group, &plan, false)
		return
	}
	if d.Purpose == events.PurposeTrain && !h.step(&plan).rewarded[group] {
		h.step(&plan).dropped[group] = true
	}
}

func (h *historian) updated(u *events.PolicyUpdated) {
	h.history.Versions++
	if want := h.trained[u.Role] + 1; u.Version != want {
		h.find("%s v%d follows v%d", u.Role, u.Version, want-1)
	}
	h.trained[u.Role] = u.Version
	s := h.steps[u.Step]
	if s == nil {
		if len(u.Groups) > 0 {
			h.find("%s v%d trained on step %d, which has no groups or was trained before", u.Role, u.Version, u.Step)
		}
		return
	}
	if !slices.IsSorted(u.Groups) {
		h.find("%s v%d did not take its groups in canonical order", u.Role, u.Version)
	}
	seen := make(map[string]bool)
	for _, group := range u.Groups {
		switch {
		case seen[group]:
			h.find("%s v%d trained twice on group %s", u.Role, u.Version, group)
		case !s.rewarded[group]:
			h.find("%s v%d trained on group %s, which step %d had not rewarded", u.Role, u.Version, group, u.Step)
		}
		seen[group] = true
	}
	for _, group := range u.Dropped {
		if seen[group] {
			h.find("%s v%d trained on group %s and left it out", u.Role, u.Version, group)
		}
		seen[group] = true
	}
	if len(seen) != s.planned {
		h.find("%s v%d accounts for %d of the %d groups of step %d", u.Role, u.Version, len(seen), s.planned, u.Step)
	}
	// Once both roles have trained a step nothing of it can come.
	if s.roles++; s.roles == 2 {
		delete(h.steps, u.Step)
	}
}

func (h *historian) end() {
	h.at = nil
	h.history.Open = len(h.open)
	if h.completed && len(h.open) > 0 {
		h.find("the run is completed, but %d of its groups have not ended, among them %s", len(h.open), firstOf(h.open))
	}
	if code, test := h.trained[events.RoleCode], h.trained[events.RoleTest]; h.completed && code != test {
		h.find("the run is completed with code v%d and test v%d", code, test)
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
