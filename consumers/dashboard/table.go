package dashboard

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Interval returns a confidence interval of the mean of values; NaN where
// there is none.
type Interval func(values []float64) (low, high float64)

// Table returns what a run came to, as text that ends with a newline: the
// evaluations before and after, the Mistake Book, the events, and the groups
// that were dropped and why. The interval is taken over the problems of both
// evaluations, of the change in each.
func Table(s *State, runDir string, interval Interval) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", headline(s))
	before, after := s.Before(), s.After()
	if before != nil || after != nil {
		evalTable(&b, before, after, interval)
		b.WriteByte('\n')
	}
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-*s%s\n", nameWidth, name, fmt.Sprintf(format, args...))
	}
	row("Mistake Book", "%s tests (%s entered, %s left)", thousands(s.Book.Size()), thousands(s.Book.Entered), thousands(s.Book.Left))
	row("Events", "%s", thousands(s.Total()))
	if s.Unreadable > 0 {
		row("Events not readable", "%s", thousands(s.Unreadable))
	}
	row("Groups rewarded", "%s", thousands(s.Rewarded))
	row("Groups dropped", "%s", dropped(s))
	row("Run directory", "%s", runDir)
	return b.String()
}

const nameWidth = 28

func headline(s *State) string {
	if s.Run == "" {
		return "No event of the run was seen"
	}
	line := fmt.Sprintf("Run %s: %d of %d steps", s.Run, s.Trained(), s.Steps)
	if s.Finished != "" {
		line += ", " + s.Finished
	}
	if s.Attempt > 1 {
		line += fmt.Sprintf(" in attempt %d", s.Attempt)
	}
	if took := s.Last.Sub(s.Started); !s.Started.IsZero() && took > 0 {
		line += " after " + duration(took)
	}
	return line
}

func evalTable(b *strings.Builder, before, after *Eval, interval Interval) {
	none := &Eval{}
	if before == nil {
		before = none
	}
	if after == nil {
		after = none
	}
	row := func(name, x, y, change string) {
		b.WriteString(strings.TrimRight(fmt.Sprintf("%-*s%8s %8s   %s", nameWidth, name, x, y, change), " ") + "\n")
	}
	measure := func(name string, of func(*Eval) float64, spread string) {
		x, y := of(before), of(after)
		change := points(y - x)
		if change != "" && spread != "" {
			change += "  " + spread
		}
		row(name, percent(x), percent(y), change)
	}
	row("Held-out problems", "before", "after", "change")
	k := max(before.Answers, after.Answers)
	measure(fmt.Sprintf("Code LLM avg@%d", k), (*Eval).Avg, spread(before, after, interval))
	measure("Test LLM validity", (*Eval).Validity, "")
	measure("Test LLM defect-finding", (*Eval).DefectFinding, "")
	count := func(name string, of func(*Eval) string) { row("  "+name, of(before), of(after), "") }
	count("at step", func(e *Eval) string {
		if e == none {
			return "-"
		}
		return strconv.Itoa(e.Step)
	})
	count("problems", func(e *Eval) string { return thousands(e.Problems()) })
	count("tests written", func(e *Eval) string { return thousands(e.Stated) })
	count("suites on a defect", func(e *Eval) string { return thousands(e.Defective) })
	for _, e := range []*Eval{before, after} {
		if e.Groups > 0 && e.Scored < e.Groups {
			fmt.Fprintf(b, "  evaluation %s: %d of %d groups scored, %d dropped\n", e.Tag, e.Scored, e.Groups, e.Dropped)
		}
	}
}

func spread(before, after *Eval, interval Interval) string {
	if interval == nil {
		return ""
	}
	low, high := interval(changes(before, after))
	if math.IsNaN(low) || math.IsNaN(high) {
		return ""
	}
	return fmt.Sprintf("[%+.1f to %+.1f, 95%% interval over problems]", 100*low, 100*high)
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
func thousands[N int | int64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	sign := ""
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
