package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"codea1/events"
	"github.com/dgraph-io/badger/v4"
)

// Finding is something in the history of a run that cannot have been.
type Finding struct {
	Seq    uint64      `json:"seq"` // the event it shows at; 0 at the end of the log
	Type   events.Type `json:"type,omitempty"`
	Group  string      `json:"group,omitempty"`
	Reason string      `json:"reason"`
}

func (f Finding) String() string {
	if f.Seq == 0 {
		return fmt.Sprintf("at the end: %s", f.Reason)
	}
	return fmt.Sprintf("event %d, %s of %s: %s", f.Seq, f.Type, f.Group, f.Reason)
}

// History is what CheckHistory found.
type History struct {
	Rewarded   uint64    `json:"rewarded"` // training groups
	Dropped    uint64    `json:"dropped"`  // groups of both purposes
	Scored     uint64    `json:"scored"`   // evaluation groups
	Open       int       `json:"open"`     // groups on their way where the log ends
	Versions   int       `json:"versions"` // policy versions, of both roles
	Recomputed uint64    `json:"recomputed"`
	Found      uint64    `json:"found"`              // findings
	Findings   []Finding `json:"findings,omitempty"` // the first maxFindings of them
}

// maxFindings bounds what is kept of a history that is wrong from end to end.
const maxFindings = 100

// CheckHistory reads the log as a story and reports what in it cannot have
// been:
//
//   - every payload is valid under its schema;
//   - every effect has its cause in the log, of the right type, under the
//     payload it was made from, and every ID follows from the cause;
//   - every group was posed and ends once: rewarded, scored or dropped;
//   - every policy version is there once and in order, and trained on groups
//     of its step that were rewarded before, in canonical order, leaving none
//     of the step out;
//   - every reward equals one computed anew from the recorded verdicts, unless
//     recipes is nil.
//
// An error means that the log could not be read; it says nothing of what was
// found. Memory is bounded by what is in flight, not by the log.
func (l *Log) CheckHistory(ctx context.Context, recipes Recipes, progress func(done uint64)) (History, error) {
	done, err := l.use()
	if err != nil {
		return History{}, err
	}
	defer done()
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	h := historian{
		log: l, txn: txn, scorer: newScorer(recipes), open: make(map[string]events.Purpose),
		steps: make(map[int]*stepLedger), trained: make(map[events.Role]int),
	}
	err = l.scan(ctx, txn, ScanOptions{}, func(item *badger.Item) (bool, error) {
		r, _, err := l.record(item)
		if err != nil {
			return false, err
		}
		if progress != nil {
			progress(r.Seq)
		}
		return true, h.observe(ctx, &r)
	})
	if err != nil {
		return History{}, err
	}
	h.end()
	return h.history, nil
}

// historian folds events, in order, into a History.
type historian struct {
	log    *Log
	txn    *badger.Txn
	scorer *scorer

	run       string
	open      map[string]events.Purpose // groups on their way
	steps     map[int]*stepLedger       // steps that not both roles have trained
	trained   map[events.Role]int       // last version
	completed bool                      // the last thing the run said is that it is done
	history   History
	at        *Record // the event looked at
}

// stepLedger is a training step on its way.
type stepLedger struct {
	planned  int
	rewarded map[string]bool
	dropped  map[string]bool
	roles    int // that have trained it
}

func (h *historian) find(format string, args ...any) {
	h.history.Found++
	if len(h.history.Findings) >= maxFindings {
		return
	}
	f := Finding{Reason: fmt.Sprintf(format, args...)}
	if h.at != nil {
		f.Seq, f.Type, f.Group = h.at.Seq, h.at.Message.Type, h.at.Message.Group
	}
	h.history.Findings = append(h.history.Findings, f)
}

func (h *historian) observe(ctx context.Context, r *Record) error {
	h.at = r
	e, err := r.Decode()
	if errors.Is(err, events.ErrNewerSchema) {
		return err
	}
	if err != nil {
		h.find("%v", err)
		return nil
	}
	if h.run == "" {
		h.run = e.Run
	}
	if e.Run != h.run {
		h.find("belongs to run %s, the log to %s", e.Run, h.run)
	}
	if err := h.checkCause(e); err != nil {
		return err
	}
	switch p := e.Payload.(type) {
	case *events.RunStarted:
		h.completed = false
	case *events.RunFinished:
		h.completed = p.Reason == events.RunCompleted
	case *events.ProblemPosed:
		h.posed(e.Group, &p.Plan)
	case *events.GroupRewarded:
		h.history.Rewarded++
		h.ended(e.Group, &p.Plan, true)
		return h.recompute(ctx, e, p)
	case *events.EvalScored:
		h.history.Scored++
		h.ended(e.Group, &p.Plan, false)
	case *events.GroupDropped:
		h.history.Dropped++
		h.dropped(e.Group, p)
	case *events.PolicyUpdated:
		h.updated(p)
	}
	return nil
}

// causes are the types an event can follow from; types that are not here begin
// something and have no cause. A drop can follow from anything.
var causes = map[events.Type]events.Type{
	events.TypeCodeSampled:   events.TypeProblemPosed,
	events.TypeTestsSampled:  events.TypeCodeSampled,
	events.TypeCodeExecuted:  events.TypeTestsSampled,
	events.TypeGroupRewarded: events.TypeCodeExecuted,
	events.TypeEvalScored:    events.TypeCodeExecuted,
}

func (h *historian) checkCause(e *events.Event) error {
	want, caused := causes[e.Type]
	if e.CausationID == "" {
		switch {
		case caused:
			h.find("has no cause, and follows from %s", want)
		case e.Type != events.TypeGroupDropped && events.New(e.Run, e.Group, e.Source, e.Time, e.Payload).ID != e.ID:
			h.find("its ID %s does not follow from run, type and group", e.ID)
		}
		return nil
	}
	if events.DeriveID(e.CausationID, e.Type) != e.ID {
		h.find("its ID %s does not follow from its cause %s", e.ID, e.CausationID)
	}
	at, ok, err := h.log.lookup(h.txn, parseID(e.CausationID))
	if err != nil {
		return err
	}
	if !ok {
		h.find("its cause %s is not in the log", e.CausationID)
		return nil
	}
	if at.payload != parseHash(e.CausationHash) {
		h.find("follows from another payload than the one that stands as event %d", at.seq)
	}
	item, err := h.txn.Get(eventKey(at.seq))
	if err != nil {
		return h.log.corrupt(at.seq, "event is missing", err)
	}
	if caused && item.UserMeta() != typeCodes[want] {
		h.find("its cause, event %d, is no %s", at.seq, want)
	}
	return nil
}

func (h *historian) posed(group string, plan *events.Plan) {
	if group != plan.GroupID() {
		h.find("its plan is that of %s", plan.GroupID())
	}
	h.open[group] = plan.Purpose
	if plan.Purpose != events.PurposeTrain {
		return
	}
	h.step(plan).planned = plan.Groups // a drop may not have known
	if plan.Step <= min(h.trained[events.RoleCode], h.trained[events.RoleTest]) {
		h.find("posed for step %d, which both roles have trained", plan.Step)
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
	purpose, open := h.open[group]
	if !open {
		h.find("the group ends twice, or was never posed")
		return
	}
	delete(h.open, group)
	if purpose != plan.Purpose {
		h.find("posed to %s, ends as %s", purpose, plan.Purpose)
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

func (h *historian) recompute(ctx context.Context, e *events.Event, recorded *events.GroupRewarded) error {
	if h.scorer.recipes == nil {
		return nil
	}
	cause, err := h.log.executedBefore(ctx, e)
	if errors.Is(err, ErrNotFound) {
		return nil // told by checkCause
	}
	if err != nil {
		return err
	}
	again, err := h.scorer.again(cause, recorded)
	if err != nil {
		h.find("its reward cannot be computed from its verdicts: %v", err)
		return nil
	}
	h.history.Recomputed++
	if difference := sameRewards(recorded, again); difference != "" {
		h.find("another reward follows from its verdicts: %s", difference)
	}
	return nil
}

// executedBefore returns the verdicts that a rewarded group follows from.
func (l *Log) executedBefore(ctx context.Context, rewarded *events.Event) (*events.CodeExecuted, error) {
	cause, err := l.Get(ctx, rewarded.CausationID)
	if err != nil {
		return nil, err
	}
	e, err := cause.Decode()
	if err != nil {
		return nil, err
	}
	executed, ok := e.Payload.(*events.CodeExecuted)
	if !ok {
		return nil, fmt.Errorf("event %d is no %s: %w", cause.Seq, events.TypeCodeExecuted, ErrNotFound)
	}
	return executed, nil
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

func firstOf(groups map[string]events.Purpose) string {
	least := ""
	for g := range groups {
		if least == "" || g < least {
			least = g
		}
	}
	return least
}
