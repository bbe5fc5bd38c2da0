package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"

	"codea1/events"
	"codea1/events/connect"
	"codea1/replay/export"
	"codea1/replay/query"
	"codea1/replay/tap"
)

// ShadowCommand is `codea1 shadow`.
type ShadowCommand struct {
	// Recipes computes rewards, and Host knows the configuration of a run.
	Recipes query.Recipes `kong:"-"`
	Host    tap.Host      `kong:"-"`

	RunName string        `arg:"" name:"run" help:"Directory of a run, or name of a run in --runs-dir or on --bus."`
	RunsDir string        `help:"Directory of the run directories." default:"runs" placeholder:"DIR"`
	Reward  []string      `help:"Reward recipe, as for replay rescore; the flag may be repeated." required:"" sep:"none" placeholder:"RECIPE"`
	Alpha   float64       `help:"Weight of R_val against R_adv in a1 and selfplay." default:"0.5" min:"0" max:"1"`
	From    string        `help:"Where to begin: now, start, a time (RFC 3339) or a position, as for tap. Default: now for a run in progress, start for another." placeholder:"POSITION"`
	JSON    bool          `name:"json" help:"Print one JSON object for each group and recipe, and one for each recipe at the end."`
	Bus     connect.Flags `embed:"" group:"Message bus"`
}

// Bounds of the memory of a shadow for groups that have not ended.
const (
	maxShadowed = 4096 // groups
	maxSteps    = 64
)

// Run rewards the groups of a run under other recipes until the run ends or ctx ends.
// In the last case it returns ctx.Err(). It reads as the command tap does and
// publishes nothing.
func (c *ShadowCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger) error {
	if c.Recipes == nil {
		return query.ErrNoRecipes
	}
	buffer := bufio.NewWriter(out)
	s := &shadow{out: buffer, logger: logger, groups: map[string]*shadowedGroup{}, steps: map[int]*shadowedStep{}}
	if c.JSON {
		s.lines = export.NewLines(buffer)
	}
	for _, reward := range c.Reward {
		name, _, score, err := recipe(c.Recipes, reward, c.Alpha)
		if err != nil {
			return err
		}
		s.recipes = append(s.recipes, shadowRecipe{name: name, score: score, all: query.NewComparison()})
	}
	reader := tap.Command{
		Host: c.Host, RunName: c.RunName, RunsDir: c.RunsDir, From: c.From, Bus: c.Bus,
		Type: []events.Type{events.TypeCodeExecuted, events.TypeGroupRewarded, events.TypeGroupDropped},
	}
	var lost error // of the output
	err := reader.Events(ctx, logger, s.add, func() { lost = errors.Join(lost, buffer.Flush()) })
	return errors.Join(err, s.end(), buffer.Flush(), lost)
}

// shadow rewards groups under other recipes than that of their run.
type shadow struct {
	recipes []shadowRecipe
	out     io.Writer
	lines   *json.Encoder // nil: lines for people
	logger  *slog.Logger
	groups  map[string]*shadowedGroup // by the ID of code.executed
	order   []string                  // of groups, the oldest first
	steps   map[int]*shadowedStep
}

// shadowRecipe is a recipe with the comparison of all groups.
type shadowRecipe struct {
	name   string
	score  query.Score
	all    *query.Comparison
	warned bool
}

// shadowedGroup is a group of which one event has arrived, or both. Some buses have no
// order across types, and may repeat an event.
type shadowedGroup struct {
	before *events.GroupRewarded
	after  []query.GroupRescored // by recipe
	done   bool
}

// shadowedStep is a step with the comparison of its groups by recipe.
type shadowedStep struct {
	ended   int // groups
	compare []*query.Comparison
}

// add takes an event.
func (s *shadow) add(e *events.Event) error {
	switch p := e.Payload.(type) {
	case *events.CodeExecuted:
		g := s.group(e.ID)
		if p.Plan.Purpose != events.PurposeTrain || g.done || g.after != nil {
			return nil
		}
		g.after = make([]query.GroupRescored, len(s.recipes))
		for i := range s.recipes {
			g.after[i].After, g.after[i].Failure = s.recipes[i].score(p)
		}
		return s.compare(e.Group, g)
	case *events.GroupRewarded:
		g := s.group(e.CausationID)
		if g.done || g.before != nil {
			return nil
		}
		g.before = p
		return s.compare(e.Group, g)
	case *events.GroupDropped:
		if p.Purpose == events.PurposeTrain {
			return s.groupEnded(p.Step, p.Groups, nil)
		}
	}
	return nil
}

// group returns the group of a code.executed event. It forgets the oldest one if there
// are too many.
func (s *shadow) group(id string) *shadowedGroup {
	g := s.groups[id]
	if g == nil {
		g = new(shadowedGroup)
		s.groups[id] = g
		if s.order = append(s.order, id); len(s.order) > maxShadowed {
			delete(s.groups, s.order[0])
			s.order = s.order[1:]
		}
	}
	return g
}

// compare compares a group of which both events have arrived.
func (s *shadow) compare(name string, g *shadowedGroup) error {
	if g.before == nil || g.after == nil {
		return nil
	}
	before, after := g.before, g.after
	*g = shadowedGroup{done: true}
	for i := range after {
		recipe, a := &s.recipes[i], &after[i]
		if a.After != nil && a.After.Plan != before.Plan {
			s.logger.Warn("a group is left out: it was rewarded under another plan than it was executed", "group", name)
			return nil
		}
		a.Group, a.Before = name, before
		recipe.all.Add(a)
		if a.Failure != nil && !recipe.warned {
			recipe.warned = true
			s.logger.Warn("a recipe cannot reward a group of this run", "recipe", recipe.name, "group", name, "error", a.Failure)
		}
		if s.lines == nil {
			continue
		}
		line := shadowedJSON{Recipe: recipe.name, Group: name, Problem: before.ProblemID, Before: export.Payload(before)}
		if a.Failure != nil {
			line.Error = a.Failure.Error()
		} else {
			line.After = export.Payload(a.After)
		}
		if err := s.lines.Encode(&line); err != nil {
			return err
		}
	}
	return s.groupEnded(before.Plan.Step, before.Plan.Groups, after)
}

// shadowedJSON is a group under one recipe as --json prints it.
type shadowedJSON struct {
	Recipe  string `json:"recipe"`
	Group   string `json:"group"`
	Problem string `json:"problem"`
	Before  any    `json:"before"` // group.rewarded of the run
	After   any    `json:"after"`  // and under the recipe; null with an error
	Error   string `json:"error,omitempty"`
}

// groupEnded adds a group to its step, and prints the step if it was the last one.
func (s *shadow) groupEnded(step, groups int, after []query.GroupRescored) error {
	if s.lines != nil {
		return nil
	}
	now := s.steps[step]
	if now == nil {
		if len(s.steps) == maxSteps { // a step does not end if its first groups were not read
			delete(s.steps, slices.Min(slices.Collect(maps.Keys(s.steps))))
		}
		now = new(shadowedStep)
		for range s.recipes {
			now.compare = append(now.compare, query.NewComparison())
		}
		s.steps[step] = now
	}
	for i := range after {
		now.compare[i].Add(&after[i])
	}
	if now.ended++; now.ended < groups {
		return nil
	}
	delete(s.steps, step)
	for i := range s.recipes {
		r := now.compare[i].Report()
		if r.Groups == 0 {
			continue
		}
		if _, err := fmt.Fprintf(s.out, "step %d  %s  code %.4f -> %.4f  test %.4f -> %.4f  TOPVAR differs in %d of %d groups  reversed: %d of %d pairs of answers, %d of %d of suites\n",
			step, s.recipes[i].name, r.Code.RewardBefore, r.Code.RewardAfter, r.Test.RewardBefore, r.Test.RewardAfter,
			r.TopVar, r.Groups, r.Code.Reversed, r.Code.Pairs, r.Test.Reversed, r.Test.Pairs); err != nil {
			return err
		}
	}
	return nil
}

// end prints the comparison of all groups. A recipe that cannot reward most of them is
// an error.
func (s *shadow) end() (err error) {
	for i := range s.recipes {
		name, report := s.recipes[i].name, s.recipes[i].all.Report()
		if unscorable := rewardsMost(name, &report); unscorable != nil {
			err = errors.Join(err, unscorable)
			continue
		}
		var printed error
		if s.lines != nil {
			printed = s.lines.Encode(&shadowedReport{name, &report})
		} else {
			_, _ = io.WriteString(s.out, "\n") // its error is that of the table, too
			printed = printRescored(s.out, name, &report)
		}
		if printed != nil {
			return errors.Join(err, printed)
		}
	}
	return err
}

// shadowedReport is the comparison of all groups as --json prints it.
type shadowedReport struct {
	Recipe string `json:"recipe"`
	*query.Rescored
}
