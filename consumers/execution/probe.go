package execution

import (
	"context"
	"crypto/sha256"
	"fmt"

	"golang.org/x/sync/errgroup"

	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/probes"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
)

// maxMutants bounds the mutants of a ground truth that a group runs on.
const maxMutants = 32

// These name the operators and the choice of probes.Sample, and the branches and the
// difficulty of probes.TakenBranches. Other ones need another version.
const (
	mutantsEngine  = "mutants-1"
	branchesEngine = "branches-1"
)

// probe measures which probes of the ground truth the kept tests of a group hit, for
// each kind that the plan asks for. No answer takes part.
func (x *Executor) probe(ctx context.Context, problem *events.Problem, truth *truthRun, out *events.CodeExecuted) error {
	tests := out.ProbedTests()
	for _, kind := range out.Plan.ProbeKinds() {
		measure := x.killed
		if kind == events.ProbeBranches {
			measure = x.taken
		}
		measured, err := measure(ctx, problem, truth, tests)
		if err != nil {
			return fmt.Errorf("%s of problem %s: %w", kind, problem.ID, err)
		}
		out.Probes = append(out.Probes, measured)
	}
	return nil
}

// killed returns which mutants of the ground truth fail each test. Each mutant runs the
// tests in a process of its own, with the time limits of an answer. A mutant that does
// not load, or that runs over its time in one of the tests, is failed by none of them:
// the first would count for every test, and the second would cost its time for each.
func (x *Executor) killed(ctx context.Context, problem *events.Problem, truth *truthRun, tests []events.CrossTest) (events.Probes, error) {
	mutants, err := probes.Sample(ctx, x.pool, problem.Solution, maxMutants)
	if err != nil {
		return events.Probes{}, err
	}
	wants, items := make([]literal.Value, len(tests)), make([]string, len(tests))
	took := timed{sum: truth.load, most: truth.load}
	for i, t := range tests {
		if wants[i], err = literal.Parse(t.Value); err != nil {
			return events.Probes{}, err
		}
		o, ok := truth.outcomes[t.Call]
		took.add(o.Took, ok)
		items[i] = t.Call
	}
	hash, fails := sha256.New(), make([][]bool, len(mutants)) // by mutant and test
	running, ctx := errgroup.WithContext(ctx)
	running.SetLimit(x.config.Workers)
	for i, mutant := range mutants {
		fmt.Fprintf(hash, "%d\n%s", len(mutant.Code), mutant.Code)
		if len(tests) == 0 {
			continue
		}
		running.Go(func() error {
			job := x.allow(took).job(sandbox.JobCalls, sandbox.Program{Code: mutant.Code, EntryPoint: problem.EntryPoint}, items)
			job.StopAtTimeout = true
			report, err := x.pool.RunCalls(ctx, job)
			if err != nil || !report.Loads {
				return err
			}
			row := make([]bool, len(tests))
			for t, o := range report.Outcomes {
				verdict, _ := judge(o, wants[t])
				if verdict == events.VerdictTimeout || verdict == events.VerdictNotRun {
					return nil
				}
				row[t] = verdict.Failed()
			}
			fails[i] = row
			return nil
		})
	}
	if err := running.Wait(); err != nil {
		return events.Probes{}, err
	}
	measured := events.NewProbes(events.ProbeMutants, mutantsEngine, fmt.Sprintf("%x", hash.Sum(nil)), len(mutants), len(tests))
	for i, row := range fails {
		for t, failed := range row {
			if failed {
				measured.Hit(t, i)
			}
		}
	}
	return measured, nil
}

// taken returns which branches of the ground truth each test takes. The ground truth runs
// in one more process, and is loaded anew for each test.
func (x *Executor) taken(ctx context.Context, problem *events.Problem, truth *truthRun, tests []events.CrossTest) (events.Probes, error) {
	calls := make([]string, len(tests))
	took := timed{sum: truth.load, most: truth.load}
	for i, t := range tests {
		o, ok := truth.outcomes[t.Call]
		took.add(truth.load+o.Took, ok)
		calls[i] = t.Call
	}
	allowed := x.allow(took)
	found, err := probes.TakenBranches(ctx, x.pool, problem.Solution, calls, sandbox.Job{Each: allowed.each, Budget: allowed.budget})
	if err != nil {
		return events.Probes{}, err
	}
	measured := events.NewProbes(events.ProbeBranches, branchesEngine, fmt.Sprintf("%x", sha256.Sum256([]byte(problem.Solution))), found.Total, len(tests))
	measured.Difficulty = found.Difficulty
	for t, row := range found.Taken {
		for i := range row {
			if row[i] == '1' {
				measured.Hit(t, i)
			}
		}
	}
	return measured, nil
}
