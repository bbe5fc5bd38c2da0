package probes

import (
	"context"
	_ "embed"
	"fmt"

	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
)

//go:embed branches.py
var branchesProgram string

// Branches are the branches of a program that calls take.
type Branches struct {
	Total      int
	Difficulty float64  // of the program, from 0 to 1
	Taken      []string // by call: a 1 or a 0 for each branch; empty for a call that did not return
	TotalLines int      // 0 without TakenLines
	Lines      []string // likewise for each line
}

// TakenBranches marks the branches of a program and runs calls on it. The limits of the
// job limits hold.
func TakenBranches(ctx context.Context, pool *sandbox.Pool, code string, calls []string, limits sandbox.Job) (*Branches, error) {
	return taken(ctx, pool, literal.Text(literal.Str(code)), calls, limits)
}

// TakenLines is TakenBranches with the lines of the program, which then takes more time.
func TakenLines(ctx context.Context, pool *sandbox.Pool, code string, calls []string, limits sandbox.Job) (*Branches, error) {
	return taken(ctx, pool, literal.Text(literal.Str(code))+", True", calls, limits)
}

func taken(ctx context.Context, pool *sandbox.Pool, load string, calls []string, limits sandbox.Job) (*Branches, error) {
	items := []string{"measure()"}
	for _, call := range calls {
		items = append(items, "taken("+literal.Text(literal.Str(call))+")")
	}
	limits.Code, limits.Entry, limits.Items = branchesProgram+"\nload("+load+")\n", "taken", items
	report, err := pool.RunCalls(ctx, limits)
	if err != nil {
		return nil, err
	}
	var counts literal.Tuple
	if report.Loads {
		counts, _ = report.Outcomes[0].Value.(literal.Tuple)
	}
	if len(counts) != 3 {
		return nil, fmt.Errorf("marking branches: %s%s", report.LoadError, report.Outcomes[0].Detail)
	}
	b := &Branches{Taken: make([]string, len(calls)), Lines: make([]string, len(calls))}
	if _, err := fmt.Sscan(literal.Text(counts[0])+" "+literal.Text(counts[1])+" "+literal.Text(counts[2]), &b.Total, &b.Difficulty, &b.TotalLines); err != nil {
		return nil, fmt.Errorf("marking branches: %w", err)
	}
	for i, o := range report.Outcomes[1:] {
		if row, ok := o.Value.(literal.Str); ok && len(row) == b.Total+b.TotalLines {
			b.Taken[i], b.Lines[i] = string(row[:b.Total]), string(row[b.Total:])
		}
	}
	return b, nil
}
