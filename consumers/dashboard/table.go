package dashboard

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"codea1/consumers/evaluation"
)

// Table returns the results of a run as text that ends with a newline: the
// evaluations before and after, the Mistake Book, the events, and the groups
// that were dropped with the reasons.
func Table(s *State, runDir string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", headline(s))
	before, after := s.Before(), s.After()
	if before != nil || after != nil {
		evalTable(&b, before, after)
		b.WriteByte('\n')
	}
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-*s%s\n", nameWidth, name, fmt.Sprintf(format, args...))
	}
	if !s.Models.WithoutTest() {
		row("Mistake Book", "%s tests (%s entered, %s left)", thousands(s.Book.Size()), thousands(s.Book.Entered), thousands(s.Book.Left))
	}
	row("Events", "%s", thousands(s.Total()))
	if s.Quarantined > 0 {
		row("Quarantined messages", "%s", thousands(s.Quarantined))
	}
	row("Groups rewarded", "%s", thousands(s.Rewarded))
	row("Groups dropped", "%s", dropped(s))
	row("Run directory", "%s", runDir)
	return b.String()
}

const nameWidth = 28

func headline(s *State) string {
	if s.Run == "" {
		return "No event of the run was received"
	}
	line := fmt.Sprintf("Run %s: %d of %d steps", s.Run, s.Trained(), s.Steps)
	if s.Finished != "" {
		line += ", " + s.Finished
	}
	if own := s.Attempt - s.Inherited; own > 1 {
		line += fmt.Sprintf(" in attempt %d", own)
	}
	if took := s.Last.Sub(s.Started); !s.Started.IsZero() && took > 0 {
		line += " after " + duration(took)
	}
	return line
}

// comparison is a line of the table of the evaluations before and after.
type comparison struct {
	Name   string `json:"name"`
	Before string `json:"before"`
	After  string `json:"after"`
	Change string `json:"change"` // empty for a line of detail
	Spread string `json:"spread"` // 95% interval of the change over problems
	Detail bool   `json:"detail"` // a count behind the figures
}

func compare(before, after *Eval) []comparison {
	none := &Eval{}
	if before == nil {
		before = none
	}
	if after == nil {
		after = none
	}
	measure := func(name string, of func(*Eval) float64) comparison {
		x, y := of(before), of(after)
		return comparison{Name: name, Before: percent(x), After: percent(y), Change: points(y - x)}
	}
	detail := func(name string, of func(*Eval) string) comparison {
		return comparison{Name: name, Before: of(before), After: of(after), Detail: true}
	}
	answers := measure(fmt.Sprintf("Code LLM avg@%d", max(before.Answers, after.Answers)), (*Eval).Avg)
	answers.Spread = spread(before, after)
	at := detail("at step", func(e *Eval) string {
		if e == none {
			return "-"
		}
		return strconv.Itoa(e.Step)
	})
	problems := detail("problems", func(e *Eval) string { return thousands(e.Problems) })
	if before.Suites+after.Suites == 0 { // without a Test LLM
		return []comparison{answers, at, problems}
	}
	return []comparison{
		answers,
		measure("Test LLM validity", (*Eval).Validity),
		measure("Test LLM defect-finding", (*Eval).DefectFinding),
		measure("Test LLM reach", (*Eval).Reach),
		measure("Test LLM trivial inputs", (*Eval).TrivialInputs),
		at, problems,
		detail("tests written", func(e *Eval) string { return thousands(e.Stated) }),
		detail("suites on a defect", func(e *Eval) string { return thousands(e.Defective) }),
	}
}

func evalTable(b *strings.Builder, before, after *Eval) {
	row := func(name, x, y, change string) {
		b.WriteString(strings.TrimRight(fmt.Sprintf("%-*s%8s %8s   %s", nameWidth, name, x, y, change), " ") + "\n")
	}
	row("Held-out problems", "before", "after", "change")
	for _, c := range compare(before, after) {
		name, change := c.Name, c.Change
		if c.Detail {
			name = "  " + name
		}
		if change != "" && c.Spread != "" {
			change += fmt.Sprintf("  [%s, 95%% interval over problems]", c.Spread)
		}
		row(name, c.Before, c.After, change)
	}
	for _, text := range incomplete(before, after) {
		fmt.Fprintf(b, "  %s\n", text)
	}
}

// incomplete names the evaluations with groups that were not scored.
func incomplete(all ...*Eval) (lines []string) {
	for _, e := range all {
		if e != nil && e.Groups > 0 && e.Scored < e.Groups {
			lines = append(lines, fmt.Sprintf("evaluation, %s: %d of %d groups scored, %d dropped", e.Name(), e.Scored, e.Groups, e.Dropped))
		}
	}
	return lines
}

// spread returns the 95% interval of the change in the share of correct answers,
// in points; empty if there is none.
func spread(before, after *Eval) string {
	low, high := evaluation.Interval(evaluation.Changes(&before.Figures, &after.Figures))
	if math.IsNaN(low) || math.IsNaN(high) {
		return ""
	}
	return fmt.Sprintf("%+.1f to %+.1f", 100*low, 100*high)
}

func dropped(s *State) string {
	if s.Dropped == 0 {
		return "0"
	}
	var reasons []string
	for _, r := range slices.Sorted(maps.Keys(s.Drops)) {
		reasons = append(reasons, fmt.Sprintf("%s %s", r, thousands(s.Drops[r])))
	}
	return fmt.Sprintf("%s (%s)", thousands(s.Dropped), strings.Join(reasons, ", "))
}

func percent(x float64) string {
	if math.IsNaN(x) {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*x)
}

func points(x float64) string {
	if math.IsNaN(x) {
		return ""
	}
	return fmt.Sprintf("%+.1f points", 100*x)
}

// thousands writes an integer with commas: 1,234,567.
func thousands(n any) string {
	sign, digits := "", fmt.Sprint(n)
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// duration writes whole seconds: 9s, 4m05s, 2h03m.
func duration(d time.Duration) string {
	seconds := int64(d.Round(time.Second).Seconds())
	switch {
	case seconds < 60:
		return fmt.Sprintf("%ds", seconds)
	case seconds < 3600:
		return fmt.Sprintf("%dm%02ds", seconds/60, seconds%60)
	}
	return fmt.Sprintf("%dh%02dm", seconds/3600, seconds%3600/60)
}
