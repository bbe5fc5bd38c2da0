package evaluation

import (
	"maps"
	"slices"
	"strings"

	"codea1/events"
)

// Answered is a problem of an evaluation with the programs that were run on its tests.
type Answered struct {
	Problem  *events.Problem
	Codes    []string
	Texts    []string // the responses with the codes
	Given    bool     // the programs came with the problem
	Suites   []string // texts of suites that were written in rounds, a block each
	Executed *events.CodeExecuted
}

// Gathered are the executed groups of an evaluation, and the reasons for which others
// left the pipeline. The zero value has seen no event.
type Gathered struct {
	Dropped []*events.GroupDropped

	scored  int
	sampled map[string]*events.CodeSampled // by group, until it is executed
	suites  map[string][]string            // likewise
	groups  map[string]Answered            // by group
}

// GatherTypes are the types of the events that Add uses.
var GatherTypes = []events.Type{events.TypeCodeSampled, events.TypeTestsSampled, events.TypeCodeExecuted, events.TypeEvalScored, events.TypeGroupDropped}

// Add folds in an event, in the order of the log.
func (g *Gathered) Add(e *events.Event) {
	if g.sampled == nil {
		g.sampled, g.suites, g.groups = map[string]*events.CodeSampled{}, map[string][]string{}, map[string]Answered{}
	}
	switch p := e.Payload.(type) {
	case *events.CodeSampled:
		if p.Posed.Plan.Purpose == events.PurposeEval {
			g.sampled[e.Group] = p
		}
	case *events.TestsSampled:
		if p.Posed.Plan.Rounds {
			for _, suite := range p.Suites[0] {
				g.suites[e.Group] = append(g.suites[e.Group], suite.Text)
			}
		}
	case *events.CodeExecuted:
		if s := g.sampled[e.Group]; s != nil {
			texts := make([]string, len(s.Answers))
			for i := range texts {
				texts[i] = s.Answers[i].Text
			}
			g.groups[e.Group] = Answered{&s.Posed.Problem, s.Codes(), texts, p.Given, g.suites[e.Group], p}
			delete(g.sampled, e.Group)
			delete(g.suites, e.Group)
		}
	case *events.EvalScored:
		g.scored++
	case *events.GroupDropped:
		if p.Purpose == events.PurposeEval {
			g.Dropped = append(g.Dropped, p)
			delete(g.groups, e.Group)
		}
	}
}

// Ended returns the number of groups that were scored or dropped.
func (g *Gathered) Ended() int { return g.scored + len(g.Dropped) }

// Groups returns the executed groups in the order of their problems' IDs.
func (g *Gathered) Groups() []Answered {
	return slices.SortedFunc(maps.Values(g.groups), func(a, b Answered) int { return strings.Compare(a.Problem.ID, b.Problem.ID) })
}
