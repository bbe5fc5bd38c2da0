package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

	"codea1/replay/eventlog"
	"codea1/replay/export"
	"codea1/replay/query"
)

// RescoreCommand is `codea1 replay rescore`.
type RescoreCommand struct {
	runArgument
	Reward string  `help:"Reward recipe: a1, golden, selfplay, verpo, cure, utrl, mutation, coverage, execverify, a formula(...) as in group.rewarded, or a recipe file with the ending .yaml or .yml." required:"" placeholder:"RECIPE"`
	Alpha  float64 `help:"Weight of R_val against R_adv in a1 and selfplay." default:"0.5" min:"0" max:"1"`
	Groups bool    `help:"Print every group before the summary."`
	JSON   bool    `name:"json" help:"Print one JSON object per line."`
}

// groupRescoredJSON is a group as --json prints it.
type groupRescoredJSON struct {
	Seq     uint64 `json:"seq"`
	Group   string `json:"group"`
	Problem string `json:"problem"`
	Before  any    `json:"before"` // group.rewarded as recorded
	After   any    `json:"after"`  // and under the other recipe
}

// Run rewards the run's groups under another recipe, without sampling or
// execution, and reports the differences.
func (c *RescoreCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger, parent *Command) error {
	if parent.Recipes == nil {
		return query.ErrNoRecipes
	}
	name, formula, score, err := recipe(parent.Recipes, c.Reward, c.Alpha)
	if err != nil {
		return err
	}
	var report query.Rescored
	err = c.read(logger, func(l *eventlog.Log) (err error) {
		total, _ := l.Last()
		meter := newMeter("rescoring", total)
		defer meter.finish()
		report, err = query.Rescore(ctx, l, score, c.visit(out), meter.at)
		return err
	})
	if err != nil {
		return err
	}
	if err := rewardsMost(name, &report); err != nil {
		return err
	}
	if c.JSON {
		return export.NewLines(out).Encode(&report)
	}
	if formula != "" {
		if _, err := fmt.Fprintln(out, formula); err != nil {
			return err
		}
	}
	return printRescored(out, name, &report)
}

// ErrUnscorable is returned for a recipe that cannot reward most groups of a run. The
// averages over the other groups would say nothing about the run.
var ErrUnscorable = errors.New("the recipe cannot reward most groups of this run")

// rewardsMost returns ErrUnscorable, with the numbers of groups, for such a recipe.
func rewardsMost(name string, r *query.Rescored) error {
	total := r.Groups + r.Unscorable
	if r.Unscorable <= r.Groups {
		return nil
	}
	return fmt.Errorf("%s of %s groups cannot be rewarded: %s: %w (first %s)",
		thousands(r.Unscorable), thousands(total), name, ErrUnscorable, r.Why)
}

// thousands writes a number with a comma after every three digits.
func thousands(n uint64) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// recipe returns the recipe and its name in the report; for a file also its
// formula, the name in group.rewarded events.
func recipe(recipes query.Recipes, reward string, alpha float64) (name, formula string, score query.Score, err error) {
	if ext := filepath.Ext(reward); ext == ".yaml" || ext == ".yml" {
		formula, score, err = recipes.File(reward)
		return filepath.Base(reward), formula, score, err
	}
	score, err = recipes.Recipe(reward, alpha)
	return fmt.Sprintf("%s, alpha %g", reward, alpha), "", score, err
}

func (c *RescoreCommand) visit(out io.Writer) func(*query.GroupRescored) error {
	if !c.Groups {
		return nil
	}
	encoder := export.NewLines(out)
	return func(g *query.GroupRescored) error {
		if c.JSON {
			return encoder.Encode(groupRescoredJSON{g.Seq, g.Group, g.Before.ProblemID, export.Payload(g.Before), export.Payload(g.After)})
		}
		var code, test query.RoleChange
		code.Compare(query.Answers(g.Before), query.Answers(g.After))
		for m := range g.Before.Test {
			test.Compare(query.Suites(g.Before, m), query.Suites(g.After, m))
		}
		code.End()
		test.End()
		_, err := fmt.Fprintf(out, "%s  %s  code %.4f -> %.4f, %d of %d pairs reversed  test %.4f -> %.4f, %d of %d  TOPVAR %d -> %d\n",
			g.Group, g.Before.ProblemID, code.RewardBefore, code.RewardAfter, code.Reversed, code.Pairs,
			test.RewardBefore, test.RewardAfter, test.Reversed, test.Pairs, g.Before.TopVar, g.After.TopVar)
		return err
	}
}

// printRescored prints a comparison as a table.
func printRescored(out io.Writer, name string, r *query.Rescored) error {
	table := newTable(out)
	fmt.Fprintf(table, "%d groups under %s\tCODE\tTEST\n", r.Groups, name)
	row := func(name string, cell func(*query.RoleChange) string) {
		fmt.Fprintf(table, "%s\t%s\t%s\n", name, cell(&r.Code), cell(&r.Test))
	}
	row("responses", func(x *query.RoleChange) string { return fmt.Sprint(x.Responses) })
	row("mean reward", func(x *query.RoleChange) string { return fmt.Sprintf("%.4f -> %.4f", x.RewardBefore, x.RewardAfter) })
	row("pairs ranked together", func(x *query.RoleChange) string { return fmt.Sprint(x.Pairs) })
	row("  in the other order", func(x *query.RoleChange) string { return percent(x.Reversed, x.Pairs) })
	row("  no longer told apart", func(x *query.RoleChange) string { return percent(x.Tied, x.Pairs) })
	row("  newly told apart", func(x *query.RoleChange) string { return percent(x.Untied, x.Pairs) })
	row("mean shift of an advantage", func(x *query.RoleChange) string { return fmt.Sprintf("%.4f", x.Shift) })
	row("advantages of the other sign", func(x *query.RoleChange) string { return percent(x.Flipped, x.Responses) })
	row("groups to train on", func(x *query.RoleChange) string {
		return fmt.Sprintf("%d -> %d (+%d -%d)", x.KeptBefore, x.KeptAfter, x.KeptGained, x.KeptLost)
	})
	fmt.Fprintf(table, "TOPVAR chooses another answer\t\t%s\n", percent(r.TopVar, r.Groups))
	fmt.Fprintf(table, "tests in the Mistake Book\t\t%d -> %d (+%d -%d, %d of another count)\n", r.BookBefore, r.BookAfter, r.BookEntered, r.BookLeft, r.BookChanged)
	if r.Unscorable > 0 {
		fmt.Fprintf(table, "groups the recipe cannot reward\t\t%d; first %s\n", r.Unscorable, r.Why)
	}
	return table.Flush()
}

func percent(part, whole uint64) string {
	if whole == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%.1f%%)", part, 100*float64(part)/float64(whole))
}
