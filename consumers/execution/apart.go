package execution

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
)

// maxPasses bounds how often a script runs for one program. All calls that do
// not depend on other calls' values are found in the first pass.
const maxPasses = 16

// scriptPass is the result of one run of a script, as harness/proxies.py writes it.
type scriptPass struct {
	Asked  []string `json:"asked"` // calls with unknown outcomes
	End    string   `json:"end"`   // if it asked for none: pass, fail, raised, unfit or how a call ended
	Detail string   `json:"detail"`

	took time.Duration
}

// tryScripts finds out which scripts can run apart from the program and which
// calls they make first. No program is involved, so no program can move its tests
// into its own process.
func (x *Executor) tryScripts(ctx context.Context, entry string, scripts []goldenScript, own limits) error {
	if len(scripts) == 0 || entry == "" {
		return nil
	}
	all := make([]int, len(scripts))
	for i := range scripts {
		all[i] = i
	}
	passes, err := x.passScripts(ctx, entry, scripts, all, nil, own)
	if err != nil {
		return err
	}
	for i, pass := range passes {
		// A very long test may hold a value that is too long to be transferred.
		short := len(scripts[i].source) <= x.config.ValueBytes/2
		scripts[i].fit = short && pass.End != "unfit" && pass.End != saidTimeout
		if scripts[i].fit {
			scripts[i].calls = pass.Asked
		}
	}
	return nil
}

// The names of outcomes of a call that neither returned nor raised.
const (
	saidTimeout = "timeout"
	saidCrashed = "crashed"
	saidNotRun  = "not_run"
)

// passScripts runs the scripts with the given indices once, with the known
// outcomes of their calls.
func (x *Executor) passScripts(ctx context.Context, entry string, scripts []goldenScript, indices []int, known map[string]sandbox.Outcome, own limits) ([]scriptPass, error) {
	passes, items, bytes := make([]scriptPass, len(indices)), []string(nil), 0
	first := 0 // the script of the first item
	flush := func(next int) error {
		err := x.passItems(ctx, entry, items, passes[first:next], own)
		first, items, bytes = next, nil, 0
		return err
	}
	for i, index := range indices {
		item, err := scripts[index].item(known)
		if err != nil {
			return nil, err
		}
		if len(item) > maxItemsBytes { // the values, not the script: tryScripts bounds that
			item = tooLargeItem
		}
		if bytes += len(item); bytes > maxItemsBytes {
			if err := flush(i); err != nil {
				return nil, err
			}
			bytes = len(item)
		}
		items = append(items, item)
	}
	return passes, flush(len(indices))
}

// maxItemsBytes bounds the scripts and the outcomes of calls that one process gets,
// so that they fit into its memory.
const maxItemsBytes = 8 << 20

// tooLargeItem replaces a script with calls that returned more than that.
const tooLargeItem = `["raise RuntimeError('the values of the calls are over the size limit of all together')", {"": ["value", "0"]}]`

// item writes the script with the known outcomes of its calls, as
// harness/proxies.py reads it.
func (s *goldenScript) item(known map[string]sandbox.Outcome) (string, error) {
	facts := map[string][2]string{}
	for _, call := range s.calls {
		if outcome, ok := known[call]; ok {
			facts[call] = describeOutcome(outcome)
		}
	}
	item, err := json.Marshal([]any{s.source, facts})
	if err != nil {
		return "", fmt.Errorf("test script: %w", err)
	}
	return string(item), nil
}

// passItems runs some scripts in one process and stores their results in passes.
func (x *Executor) passItems(ctx context.Context, entry string, items []string, passes []scriptPass, own limits) error {
	if len(items) == 0 {
		return nil
	}
	s, err := x.pool.Do(ctx, own.job(sandbox.JobProxies, sandbox.Program{EntryPoint: entry}, items))
	if err != nil {
		return err
	}
	for i := range passes {
		switch {
		case i >= len(s.Replies):
			passes[i] = scriptPass{End: saidNotRun, Detail: "the script was not reached within the job's time"}
		case s.Replies[i].Tag == sandbox.TagValue:
			if err := json.Unmarshal([]byte(s.Replies[i].Text), &passes[i]); err != nil {
				passes[i] = scriptPass{End: saidTimeout, Detail: fmt.Sprintf("the script itself: its answer is no JSON: %v", err)}
			}
		default:
			passes[i] = scriptPass{End: saidTimeout, Detail: "the script itself: " + x.pool.Outcome(s.Replies[i]).Detail}
		}
		if i < len(s.Replies) {
			passes[i].took = s.Replies[i].Took
		}
	}
	return nil
}

// describeOutcome writes an outcome as harness/proxies.py reads it.
func describeOutcome(o sandbox.Outcome) [2]string {
	switch {
	case o.Kind == sandbox.Returned && o.Value != nil:
		return [2]string{"value", literal.Text(o.Value)}
	case o.Kind == sandbox.Returned && strings.Contains(o.Detail, sandbox.OverLimit):
		return [2]string{"large", o.Detail}
	case o.Kind == sandbox.Returned:
		return [2]string{"opaque", o.Detail}
	case o.Kind == sandbox.Raised:
		return [2]string{"raised", o.Detail}
	case o.Kind == sandbox.TimedOut:
		return [2]string{saidTimeout, o.Detail}
	case o.Kind == sandbox.Crashed:
		return [2]string{saidCrashed, o.Detail}
	}
	return [2]string{saidNotRun, o.Detail}
}

// apart runs the scripts that can run apart from the program until none asks for a call
// that has not run on the program.
func (r *goldenRun) apart(ctx context.Context, report sandbox.Report, scripts []goldenScript) error {
	scripts = slices.Clone(scripts) // their calls grow for this program only
	var open []int
	for i, s := range scripts {
		switch {
		case !s.fit:
		case !report.Loads:
			r.verdicts[s.test] = events.GoldenVerdict{Verdict: events.VerdictNotRun, Detail: report.LoadError}
		default:
			open = append(open, i)
		}
	}
	own := r.allowScripts(scripts)
	for pass := 0; len(open) > 0; pass++ {
		passes, err := r.x.passScripts(ctx, r.program.EntryPoint, scripts, open, r.known, own)
		if err != nil {
			return err
		}
		var again []int
		asked := newCalls()
		for i, index := range open {
			script, said := &scripts[index], passes[i]
			took := r.took[script.test]
			r.took[script.test] = timed{sum: took.sum + said.took, most: max(took.most, said.took)}
			if len(said.Asked) == 0 || pass == maxPasses {
				r.verdicts[script.test] = said.verdict()
				continue
			}
			again = append(again, index)
			script.calls = slices.Concat(script.calls, said.Asked)
			for _, call := range said.Asked {
				if _, ok := r.known[call]; !ok {
					asked.add(call)
				}
			}
		}
		open = again
		if len(asked.list) == 0 {
			continue
		}
		more, err := r.x.pool.RunCalls(ctx, r.allow(asked.list).job(sandbox.JobCalls, r.program, asked.list))
		if err != nil {
			return err
		}
		for i, call := range asked.list {
			r.known[call] = more.Outcomes[i]
		}
	}
	return nil
}

func (s *scriptPass) verdict() events.GoldenVerdict {
	v := events.GoldenVerdict{Detail: sandbox.Clip(s.Detail)}
	if len(s.Asked) > 0 {
		return events.GoldenVerdict{Verdict: events.VerdictNotRun, Detail: fmt.Sprintf("the script asks for new calls after %d runs", maxPasses)}
	}
	switch s.End {
	case "pass":
		v.Verdict = events.VerdictPass
	case "fail":
		v.Verdict = events.VerdictFail
	case saidTimeout:
		v.Verdict = events.VerdictTimeout
	case saidNotRun:
		v.Verdict = events.VerdictNotRun
	default:
		v.Verdict = events.VerdictRaised
	}
	return v
}
