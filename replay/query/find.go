package query

import (
	"context"
	"errors"
	"regexp"

	"codea1/events"
	"codea1/replay/eventlog"
)

// Predicate describes answers. An answer matches if it matches every expression
// that is set.
type Predicate struct {
	Code  *regexp.Regexp // matches the program of the answer
	Text  *regexp.Regexp // matches the whole completion
	Suite *regexp.Regexp // matches the completion of a suite for the answer
	Error *regexp.Regexp // matches the load error, or the error that a test raised
}

// Affected is a group with matching answers.
type Affected struct {
	Group   string
	Problem string
	Plan    events.Plan
	Answers []int                   // matching
	Updates []*events.PolicyUpdated // versions that trained on the group
}

// Find calls visit for every selected group with matching answers, in the order
// in which the groups were posed.
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

// match returns the matching answers of a group.
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
