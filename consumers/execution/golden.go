package execution

import (
	"context"
	"slices"

	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
)

// GoldenPlan is a problem's golden tests, parsed once and run on any number of
// programs.
type GoldenPlan struct {
	tests   int
	checks  []goldenCheck
	scripts []goldenScript
}

// goldenCheck is a test of the form `assert entry(...) == value`.
type goldenCheck struct {
	test int // index among the golden tests
	expectation
}

// goldenScript is any other test.
type goldenScript struct {
	test   int
	source string
	fit    bool     // it can run apart from the program
	calls  []string // its known calls, if it is fit
}

// PlanGolden parses golden tests; each is one assert or one stand-alone script.
// `assert entry(...) == value` becomes a call. Its value is compared outside the
// program's process. Any other test is a script. It runs in a process of its own
// and has its calls made for it (harness/proxies.py). If it needs more of the
// program than calls of the entry point with literals, it runs inside the program's
// process, and its verdicts say so.
//
// truth is the ground truth. Its Code may be empty. If it is not, a script that the
// ground truth passes only inside its process, for example because a value is too
// large to be transferred, runs inside for every program.
func (x *Executor) PlanGolden(ctx context.Context, truth sandbox.Program, tests []string) (*GoldenPlan, error) {
	entry, plan := truth.EntryPoint, &GoldenPlan{tests: len(tests)}
	if len(tests) == 0 {
		return plan, nil
	}
	parsed, err := x.parseSuites(ctx, entry, tests, true, x.config.JobTimeout)
	if err != nil {
		return nil, err
	}
	for i, statements := range parsed {
		if len(statements) != 1 || statements[0].Reason != "" || !literal.SelfEqual(statements[0].stated) {
			plan.scripts = append(plan.scripts, goldenScript{test: i, source: tests[i]})
			continue
		}
		st := statements[0]
		plan.checks = append(plan.checks, goldenCheck{i, expectation{st.Call, st.stated}})
	}
	if err := x.tryScripts(ctx, entry, plan.scripts); err != nil {
		return nil, err
	}
	return plan, x.settle(ctx, truth, plan)
}

// settle marks the scripts that the ground truth passes only inside its process.
func (x *Executor) settle(ctx context.Context, truth sandbox.Program, plan *GoldenPlan) error {
	isFit := func(s goldenScript) bool { return s.fit }
	if truth.Code == "" || !slices.ContainsFunc(plan.scripts, isFit) {
		return nil
	}
	apart, err := x.Grade(ctx, truth, plan)
	if err != nil {
		return err
	}
	var doubtful []goldenScript
	for _, s := range plan.scripts {
		if s.fit && apart[s.test].Verdict != events.VerdictPass {
			s.fit = false
			doubtful = append(doubtful, s)
		}
	}
	inside := make([]events.GoldenVerdict, plan.tests)
	if err := x.runInside(ctx, truth, doubtful, inside); err != nil {
		return err
	}
	for i, s := range plan.scripts {
		if s.fit && inside[s.test].Verdict == events.VerdictPass {
			plan.scripts[i].fit, plan.scripts[i].calls = false, nil
		}
	}
	return nil
}

// Grade runs golden tests on a program and returns one verdict per test. The
// error is ctx's, sandbox.ErrClosed or a *sandbox.Error.
func (x *Executor) Grade(ctx context.Context, program sandbox.Program, plan *GoldenPlan) ([]events.GoldenVerdict, error) {
	_, verdicts, err := x.GradeWithReport(ctx, program, plan)
	return verdicts, err
}

// GradeWithReport is Grade with the report on the program.
func (x *Executor) GradeWithReport(ctx context.Context, program sandbox.Program, plan *GoldenPlan) (sandbox.Report, []events.GoldenVerdict, error) {
	asked := newCalls()
	plan.ask(asked)
	report, err := x.pool.Run(ctx, program, asked.list)
	if err != nil {
		return sandbox.Report{}, nil, err
	}
	verdicts, err := x.judgeReport(ctx, program, plan, asked, report)
	return report, verdicts, err
}

// ask adds the calls of the plan's checks and the known calls of its scripts.
func (g *GoldenPlan) ask(asked *calls) {
	for _, c := range g.checks {
		asked.add(c.call)
	}
	for _, script := range g.scripts {
		for _, call := range script.calls {
			asked.add(call)
		}
	}
}

// judgeReport judges the checks by a report on the asked calls, and runs the
// scripts.
func (x *Executor) judgeReport(ctx context.Context, program sandbox.Program, plan *GoldenPlan, asked *calls, report sandbox.Report) ([]events.GoldenVerdict, error) {
	if plan.tests == 0 {
		return nil, nil
	}
	verdicts := make([]events.GoldenVerdict, plan.tests)
	for _, c := range plan.checks {
		v := &verdicts[c.test]
		v.Verdict, v.Detail = judge(report.Outcomes[asked.index[c.call]], c.want)
	}
	known := make(map[string]sandbox.Outcome, len(asked.list))
	for i, call := range asked.list {
		known[call] = report.Outcomes[i]
	}
	if err := x.runApart(ctx, program, plan.scripts, report, known, verdicts); err != nil {
		return nil, err
	}
	return verdicts, x.runInside(ctx, program, plan.scripts, verdicts)
}

// runInside runs the scripts that cannot run apart from the program in its
// process. They have a child of their own, because a script holds expectations.
func (x *Executor) runInside(ctx context.Context, program sandbox.Program, scripts []goldenScript, verdicts []events.GoldenVerdict) error {
	var inside []goldenScript
	var sources []string
	for _, s := range scripts {
		if !s.fit {
			inside = append(inside, s)
			sources = append(sources, s.source)
		}
	}
	if len(inside) == 0 {
		return nil
	}
	s, err := x.pool.Do(ctx, sandbox.Job{Kind: sandbox.JobScripts, Code: program.Code, Entry: program.EntryPoint, Items: sources})
	if err != nil {
		return err
	}
	for i, script := range inside {
		v := events.GoldenVerdict{Verdict: events.VerdictNotRun, InProcess: true, Detail: s.LoadError}
		switch {
		case i >= len(s.Replies):
		case s.Replies[i].Tag == sandbox.TagAssertion:
			v.Verdict, v.Detail = events.VerdictFail, sandbox.Clip(s.Replies[i].Text)
		default:
			v.Verdict, v.Detail = judge(x.pool.Outcome(s.Replies[i]), literal.Bool(true))
		}
		verdicts[script.test] = v
	}
	return nil
}

// Check runs golden tests on a program: PlanGolden without a ground truth, then
// Grade.
func (x *Executor) Check(ctx context.Context, code, entry string, tests []string) ([]events.GoldenVerdict, error) {
	plan, err := x.PlanGolden(ctx, sandbox.Program{EntryPoint: entry}, tests)
	if err != nil {
		return nil, err
	}
	return x.Grade(ctx, sandbox.Program{Code: code, EntryPoint: entry}, plan)
}

// CheckTruth runs golden tests on the ground truth that they were written for. A
// script that it passes only inside its process runs there.
func (x *Executor) CheckTruth(ctx context.Context, code, entry string, tests []string) ([]events.GoldenVerdict, error) {
	truth := sandbox.Program{Code: code, EntryPoint: entry}
	plan, err := x.PlanGolden(ctx, truth, tests)
	if err != nil {
		return nil, err
	}
	return x.Grade(ctx, truth, plan)
}
