package experiment

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Cost is the cost of a whole run, worked out from its settings.
type Cost struct {
	Steps  int
	Tokens int64         // of rollouts, if every completion has its longest length
	Time   time.Duration // of computing for these tokens; 0 if it is not known
}

// printCost prints the runs with their state, and the cost of those that are left.
// A completed run tells the time per token: of its own arm or, if that has none, of
// all. Without a completed run it is worked out from the settings.
func printCost(ctx context.Context, out io.Writer, runs []*Run, host Host, parallel int) error {
	recorded, evaluations, lost := 0, 0, 0
	records, costs := make([]*Record, len(runs)), map[*Arm]Cost{} // the seed changes no cost
	elapsed, tokens := map[string]time.Duration{}, map[string]int64{}
	var arms []string
	for i, r := range runs {
		if err := r.check(host); err != nil {
			return err
		}
		var err error
		records[i], err = r.read(ctx, host)
		if _, known := costs[r.Arm]; err == nil && !known {
			costs[r.Arm], err = host.Cost(ctx, r.arm)
		}
		if err != nil {
			return fmt.Errorf("run %s: %w", r.Name, err)
		}
		if records[i].completed() && records[i].recorded == nil { // a recorded one may be of another machine
			for _, arm := range []string{"", r.Arm.Name} {
				elapsed[arm] += records[i].Elapsed
				tokens[arm] += costs[r.Arm].Tokens
			}
			arms = append(arms, r.Arm.Name)
		}
	}
	var b strings.Builder
	width := nameWidth(runs)
	fmt.Fprintf(&b, "%-*s  %-20s %9s %19s  %s\n", width, "RUN", "STATE", "STEPS", "ROLLOUT TOKENS", "TIME")
	var left time.Duration
	var tokensLeft int64
	completed, known := 0, true
	for i, r := range runs {
		record, cost := records[i], costs[r.Arm]
		state, share, need, took := "to begin", 1.0, "up to "+english.Sprint(cost.Tokens), "unknown"
		if r.again && record.recorded != nil {
			state, record = "to train again", nil
		}
		if record.completed() {
			completed++
			state, left := "completed", &evaluations
			if record.recorded != nil {
				state, left = "recorded", &lost
				recorded++
			}
			*left += r.evaluationsLeft()
			fmt.Fprintf(&b, "%-*s  %-20s %9d %19s  %s\n", width, r.Name, state, record.trained(), english.Sprint(record.Tokens), rounded(record.Elapsed))
			continue
		}
		if record != nil {
			state = fmt.Sprintf("step %d of %d", record.Trained(), cost.Steps)
			share = 1 - min(1, float64(record.Trained())/float64(max(1, cost.Steps)))
		}
		arm := r.Arm.Name
		if tokens[arm] == 0 {
			arm = ""
		}
		estimate := time.Duration(share * float64(cost.Time))
		if n := tokens[arm]; n > 0 {
			estimate = time.Duration(share * float64(elapsed[arm]) * float64(cost.Tokens) / float64(n))
		}
		tokensLeft += int64(share * float64(cost.Tokens))
		if left += estimate; estimate > 0 {
			took = "about " + rounded(estimate)
		} else {
			known = false
		}
		fmt.Fprintf(&b, "%-*s  %-20s %9d %19s  %s\n", width, r.Name, state, cost.Steps, need, took)
	}
	fmt.Fprintf(&b, "\n%d of %d runs are completed", completed, len(runs))
	if recorded > 0 {
		fmt.Fprintf(&b, ", %d of them recorded", recorded)
	}
	fmt.Fprintf(&b, ". The %d others sample at most %s tokens.\n", len(runs)-completed, english.Sprint(tokensLeft))
	if evaluations > 0 {
		fmt.Fprintf(&b, "%d evaluations of completed runs are left.\n", evaluations)
	}
	if lost > 0 {
		fmt.Fprintf(&b, "%d evaluations are not made, because the checkpoints of recorded runs are not here.\n", lost)
	}
	switch {
	case completed == len(runs):
	case !known:
		fmt.Fprintf(&b, "Their time is not known before a run is completed.\n")
	case len(arms) > 0:
		fmt.Fprintf(&b, "They take about %s with --parallel %d if they have the speed of the completed runs.\n", rounded(left/time.Duration(parallel)), parallel)
	default:
		fmt.Fprintf(&b, "They take up to %s of computing on this machine, worked out from the settings; running the tests takes more.\n", rounded(left))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func rounded(d time.Duration) string {
	return d.Round(max(time.Second, (d / 100).Truncate(time.Second))).String()
}

func nameWidth(runs []*Run) int {
	width := 0
	for _, r := range runs {
		width = max(width, len(r.Name))
	}
	return width
}

// english writes numbers with commas.
var english = message.NewPrinter(language.English)
