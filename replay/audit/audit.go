package audit

import (
	"context"
	"errors"
	"fmt"

	"codea1/events"
	"codea1/replay/eventlog"
	"codea1/replay/query"
)

// Finding is a contradiction in the events of a run.
type Finding struct {
	Seq    uint64      `json:"seq"` // the event of the contradiction; 0 at the end of the log
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

// Report is the result of Check.
type Report struct {
	Rewarded   uint64    `json:"rewarded"` // training groups
	Dropped    uint64    `json:"dropped"`  // groups of both purposes
	Scored     uint64    `json:"scored"`   // evaluation groups
	Open       int       `json:"open"`     // groups that have not ended
	Versions   int       `json:"versions"` // policy versions, of both roles
	Recomputed uint64    `json:"recomputed"`
	Found      uint64    `json:"found"`              // number of findings
	Findings   []Finding `json:"findings,omitempty"` // the first maxFindings of them
}

// maxFindings bounds the findings in a report.
const maxFindings = 100

// Check reads the events of a run and reports contradictions. It checks that
//
//   - every payload is valid under its schema;
//   - the log has the cause of every event, of the right type and with the payload
//     hash that the event names, and every ID derives from the cause;
//   - every group was posed and ends once: rewarded, scored or dropped; all its
//     events have the plan that it was posed with;
//   - every policy version occurs once and in order, and was trained on rewarded
//     groups of its step, in canonical order, without leaving one out;
//   - every reward equals the one computed from the recorded verdicts, unless
//     recipes is nil.
//
// An error means that the log could not be read. Memory is bounded by the groups
// that have not ended, not by the log.
func Check(ctx context.Context, log eventlog.Reader, recipes query.Recipes, progress func(done uint64)) (Report, error) {
	a := auditor{
		log: log, scorer: newScorer(recipes), open: make(map[string]events.Plan),
		steps: make(map[int]*step), trained: make(map[events.Role]int), follows: events.ModelsBoth.Causes(),
	}
	for r, err := range log.Read(ctx, eventlog.ReadOptions{}) {
		if err != nil {
			return Report{}, err
		}
		if progress != nil {
			progress(r.Seq)
		}
		a.causes.add(&r)
		if err := a.check(ctx, &r); err != nil {
			return Report{}, err
		}
	}
	a.end()
	return a.report, nil
}

// auditor checks events in the order of the log.
type auditor struct {
	log    eventlog.Reader
	scorer *scorer
	causes recent

	run       string
	models    events.Models               // of the last attempt
	follows   map[events.Type]events.Type // Models.Causes
	open      map[string]events.Plan      // groups that have not ended
	steps     map[int]*step               // steps that not every model was trained on
	trained   map[events.Role]int         // last version
	completed bool                        // the last attempt completed the run
	report    Report
	at        *eventlog.Record // current event
}

// find adds a finding at the current event.
func (a *auditor) find(format string, args ...any) {
	a.report.Found++
	if len(a.report.Findings) >= maxFindings {
		return
	}
	f := Finding{Reason: fmt.Sprintf(format, args...)}
	if a.at != nil {
		f.Seq, f.Type, f.Group = a.at.Seq, a.at.Message.Type, a.at.Message.Group
	}
	a.report.Findings = append(a.report.Findings, f)
}

func (a *auditor) check(ctx context.Context, r *eventlog.Record) error {
	a.at = r
	e, err := r.Decode()
	if err != nil {
		a.find("%v", err)
		return nil
	}
	if a.run == "" {
		a.run = e.Run
	}
	if e.Run != a.run {
		a.find("belongs to run %s, the log to %s", e.Run, a.run)
	}
	if err := a.checkCause(ctx, e); err != nil {
		return err
	}
	a.checkPlan(e)
	switch p := e.Payload.(type) {
	case *events.RunStarted:
		a.completed, a.models, a.follows = false, p.Models, p.Models.Causes()
	case *events.RunFinished:
		a.completed = p.Reason == events.RunCompleted
	case *events.ProblemPosed:
		a.posed(e.Group, &p.Plan)
	case *events.GroupRewarded:
		a.report.Rewarded++
		a.ended(e.Group, &p.Plan, true)
		return a.recompute(ctx, e, p)
	case *events.EvalScored:
		a.report.Scored++
		a.ended(e.Group, &p.Plan, false)
	case *events.GroupDropped:
		a.report.Dropped++
		a.dropped(e.Group, p)
	case *events.PolicyUpdated:
		a.updated(p)
	}
	return nil
}

// recompute compares a recorded reward with the one that its verdicts give.
func (a *auditor) recompute(ctx context.Context, e *events.Event, recorded *events.GroupRewarded) error {
	if a.scorer.recipes == nil {
		return nil
	}
	executed, err := query.Executed(ctx, a.log, e)
	if errors.Is(err, eventlog.ErrNotFound) {
		return nil // checkCause has reported it
	}
	if err != nil {
		return err
	}
	again, err := a.scorer.again(executed, recorded)
	if err != nil {
		a.find("its reward cannot be computed from its verdicts: %v", err)
		return nil
	}
	a.report.Recomputed++
	if difference := query.Difference(recorded, again); difference != "" {
		a.find("another reward follows from its verdicts: %s", difference)
	}
	return nil
}
