package query

import (
	"context"
	"errors"
	"regexp"

	"codea1/events"
	"codea1/replay/eventlog"
)

// Predicate is a question to the history of a run. A group is affected when at
// least one response of it matches every expression that is set.
type Predicate struct {
	Code  *regexp.Regexp // the program of an answer
	Text  *regexp.Regexp // the whole response of an answer
	Suite *regexp.Regexp // the response of a suite written for the answer
	Error *regexp.Regexp // why the answer does not load, or what a test of it raised
}

// Affected is a group that a predicate holds for.
type Affected struct {
	Group   string
	Problem string
	Plan    events.Plan
	Answers []int // that match
	// Updates are the versions that trained on the group: what the matching
	// answers have moved.
	Updates []*events.PolicyUpdated
}

// Find calls visit for every selected group that the predicate holds for, in
// the order in which they were posed.
func Find(ctx context.Context, log eventlog.Reader, s Selection, p Predicate, visit func(*Affected) error, progress func(done uint64)) error {
	updates, err := eventlog.Updates(ctx, log)
	if err != nil {
		return err
	}
	moved := make(map[string][]*events.PolicyUpdated)
	for _, u := range updates {
		for _, group := range u.Groups {
			moved[group] = append(moved[group], u)
		}
	}
	for r, err := range log.Read(ctx, eventlog.ReadOptions{Types: []events.Type{events.TypeProblemPosed}}) {
		if err != nil {
			return err
		}
		if progress != nil {
			progress(r.Seq)
		}
		if !s.Selects(&r.Message) {
			continue
		}
		g, err := Group(ctx, log, r.Message.Run, r.Message.Group)
		if errors.Is(err, ErrUnreadable) {
			continue
		}
		if err != nil {
			return err
		}
		answers := p.match(g)
		if len(answers) == 0 {
			continue
		}
		err = visit(&Affected{g.Group, g.Posed.Problem.ID, g.Posed.Plan, answers, moved[g.Group]})
		if err != nil {
			return err
		}
	}
	return nil
}

// match returns the answers of a group that match.
func (p *Predicate) match(g *Lineage) []int {
	var answers []int
	for m := range g.Posed.Plan.Answers {
		if (p.Code == nil || g.Tests != nil && p.Code.MatchString(g.Tests.Codes[m])) &&
			(p.Text == nil || g.Code != nil && p.Text.MatchString(g.Code.Answers[m].Text)) &&
			(p.Suite == nil || g.Tests != nil && anySuite(p.Suite, g.Tests.Suites[m])) &&
			(p.Error == nil || g.Executed != nil && anyError(p.Error, &g.Executed.Answers[m])) {
			answers = append(answers, m)
		}
	}
	return answers
}

func anySuite(x *regexp.Regexp, suites []events.Completion) bool {
	for n := range suites {
		if x.MatchString(suites[n].Text) {
			return true
		}
	}
	return false
}

func anyError(x *regexp.Regexp, a *events.ExecutedAnswer) bool {
	if a.LoadError != "" && x.MatchString(a.LoadError) {
		return true
	}
	for n := range a.Suites {
		for i := range a.Suites[n].Tests {
			if t := &a.Suites[n].Tests[i]; t.Verdict == events.VerdictRaised && x.MatchString(t.Detail) {
				return true
			}
		}
	}
	return false
}
