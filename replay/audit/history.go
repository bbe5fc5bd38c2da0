package audit

import (
	"context"
	"errors"
	"fmt"

	"codea1/events"
	"codea1/replay/eventlog"
	"codea1/replay/query"
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
//   - every group was posed and ends once: rewarded, scored or dropped; all
//     its events tell of the plan that it was posed with;
//   - every policy version is there once and in order, and trained on groups
//     of its step that were rewarded before, in canonical order, leaving none
//     of the step out;
//   - every reward equals one computed anew from the recorded verdicts, unless
//     recipes is nil.
//
// An error means that the log could not be read; it says nothing of what was
// found. Memory is bounded by what is in flight, not by the log.
func CheckHistory(ctx context.Context, log eventlog.Reader, recipes query.Recipes, progress func(done uint64)) (History, error) {
	h := historian{
		log: log, scorer: newScorer(recipes), open: make(map[string]events.Plan),
		steps: make(map[int]*stepLedger), trained: make(map[events.Role]int),
	}
	for r, err := range log.Read(ctx, eventlog.ReadOptions{}) {
		if err != nil {
			return History{}, err
		}
		if progress != nil {
			progress(r.Seq)
		}
		h.causes.add(&r)
		if err := h.observe(ctx, &r); err != nil {
			return History{}, err
		}
	}
	h.end()
	return h.history, nil
}

// historian folds events, in order, into a History.
type historian struct {
	log    eventlog.Reader
	scorer *scorer
	causes recent

	run       string
	open      map[string]events.Plan // groups on their way
	steps     map[int]*stepLedger    // steps that not both roles have trained
	trained   map[events.Role]int    // last version
	completed bool                   // the last thing the run said is that it is done
	history   History
	at        *eventlog.Record // the event looked at
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

func (h *historian) observe(ctx context.Context, r *eventlog.Record) error {
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
	if err := h.checkCause(ctx, e); err != nil {
		return err
	}
	h.checkPlan(e)
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

func (h *historian) recompute(ctx context.Context, e *events.Event, recorded *events.GroupRewarded) error {
	if h.scorer.recipes == nil {
		return nil
	}
	cause, err := query.Executed(ctx, h.log, e)
	if errors.Is(err, eventlog.ErrNotFound) {
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
	if difference := query.Difference(recorded, again); difference != "" {
		h.find("another reward follows from its verdicts: %s", difference)
	}
	return nil
}
