package execution

import (
	"context"
	"slices"
	"time"

	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
)

// GoldenPlan is a problem's golden tests, parsed once and run on any number of
// programs.
type GoldenPlan struct {
	tests   int
	atol    float64 // tolerance of the checks
	brief   bool
	votes   int  // tests that also a brief run makes
	digests bool // a script has the digests of values
	checks  []goldenCheck
	scripts []goldenScript
	took    map[string]time.Duration // by the ground truth, for each call that it made
	load    time.Duration            // likewise
}

// StopEarly makes Grade end at the first test that a program does not pass, but not before
// the calls of so many tests have run, unless one runs over its time. The tests after it
// are not run. It is for callers that only ask which test is the first that a program does
// not pass, and how it does on the first tests.
func (g *GoldenPlan) StopEarly(votes int) {
	g.brief, g.votes = true, votes
	slices.SortFunc(g.scripts, func(a, b goldenScript) int { return a.test - b.test })
}

// goldenCheck is a test of the form `assert entry(...) == value`.
type goldenCheck struct {
	test   int // index among the golden tests
	source string
	expectation
	accepts func(literal.Value) bool // decides in place of the comparison; nil: the comparison does
}

// judge returns the verdict of an outcome of the check's call.
func (c *goldenCheck) judge(o sandbox.Outcome, atol float64) (events.Verdict, string) {
	switch {
	case c.accepts == nil || o.Kind != sandbox.Returned || o.Value == nil:
		return judgeClose(o, c.want, atol)
	case c.accepts(o.Value):
		return events.VerdictPass, ""
	}
	return events.VerdictFail, "returned " + sandbox.Clip(literal.Text(o.Value))
}

// goldenScript is any other test.
type goldenScript struct {
	test   int
	source string
	fit    bool     // it can run apart from the program
	calls  []string // its known calls, if it is fit or returned is known
	took   timed    // the script itself, with the ground truth
	// The digest of the value that the ground truth returned, of a script that recomputes
	// its only call. It runs inside a program's process only if the program returns another
	// one.
	returned string
}

// PlanGolden parses golden tests; each is one assert or one stand-alone script.
// `assert entry(...) == value` becomes a call. Its value is compared outside the
// program's process. Any other test is a script. It runs in a process of its own
// and has its calls made for it (harness/proxies.py). If it needs more of the
// program than calls of the entry point with literals, it runs inside the program's
// process, and its verdicts say so.
//
// truth is the ground truth. Its Code may be empty. If it is not, a test that the
// ground truth passes only inside its process runs inside for every program. If the
// reason is a value that is too large to be transferred, only the programs run it that
// do not return the same value. The limits of the other programs follow from its time.
//
// The value of a call may differ from the literal by the tolerance atol, as
// literal.Close defines it.
func (x *Executor) PlanGolden(ctx context.Context, truth sandbox.Program, tests []string, atol float64) (*GoldenPlan, error) {
	entry, plan := truth.EntryPoint, &GoldenPlan{tests: len(tests), atol: atol}
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
		plan.checks = append(plan.checks, goldenCheck{test: i, source: tests[i], expectation: expectation{st.Call, st.stated}})
	}
	own := x.allow(timed{})
	if truth.Code != "" {
		own = x.allowTruth()
	}
	if err := x.tryScripts(ctx, entry, plan.scripts, own); err != nil {
		return nil, err
	}
	return plan, x.settle(ctx, truth, plan)
}

// settle runs the tests on the ground truth. It marks those that the ground truth passes
// only inside its process, and notes how long each takes. A check that it does not pass
// outside, such as one of a Fraction or of a dict's keys, becomes a script inside, if it
// passes there.
func (x *Executor) settle(ctx context.Context, truth sandbox.Program, plan *GoldenPlan) error {
	if truth.Code == "" || plan.tests == 0 {
		return nil
	}
	run := goldenRun{x: x, program: truth, plan: plan, fixed: x.allowTruth(), known: map[string]sandbox.Outcome{}}
	report, err := run.grade(ctx)
	if err != nil {
		return err
	}
	plan.load = report.LoadTook
	plan.took = make(map[string]time.Duration, len(run.known))
	for call, outcome := range run.known {
		plan.took[call] = outcome.Took
	}
	var doubtful []goldenScript
	for i, s := range plan.scripts {
		plan.scripts[i].took = run.took[s.test]
		if s.fit && run.verdicts[s.test].Verdict != events.VerdictPass {
			open := goldenScript{test: s.test, source: s.source}
			if recomputes(s.source, truth.EntryPoint, s.calls) {
				if open.returned = run.digest(s.calls[0]); open.returned != "" {
					open.calls = s.calls
				}
			}
			doubtful = append(doubtful, open)
		}
	}
	for _, c := range plan.checks {
		if run.verdicts[c.test].Verdict != events.VerdictPass {
			doubtful = append(doubtful, goldenScript{test: c.test, source: c.source})
		}
	}
	if err := run.inside(ctx, doubtful); err != nil {
		return err
	}
	for _, s := range doubtful {
		if run.verdicts[s.test].Verdict == events.VerdictPass {
			s.took = run.took[s.test]
			plan.moveInside(s)
			plan.digests = plan.digests || s.returned != ""
		}
	}
	return nil
}

// moveInside replaces a check or script by a script inside.
func (g *GoldenPlan) moveInside(s goldenScript) {
	g.checks = slices.DeleteFunc(g.checks, func(c goldenCheck) bool { return c.test == s.test })
	g.scripts = slices.DeleteFunc(g.scripts, func(old goldenScript) bool { return old.test == s.test })
	g.scripts = append(g.scripts, s)
}

// Grade runs golden tests on a program and returns one verdict per test. The
// error is ctx's, sandbox.ErrClosed or a *sandbox.Error.
func (x *Executor) Grade(ctx context.Context, program sandbox.Program, plan *GoldenPlan) ([]events.GoldenVerdict, error) {
	_, verdicts, err := x.GradeWithReport(ctx, program, plan)
	return verdicts, err
}

// GradeWithReport is Grade with the report on the program.
func (x *Executor) GradeWithReport(ctx context.Context, program sandbox.Program, plan *GoldenPlan) (sandbox.Report, []events.GoldenVerdict, error) {
	run := goldenRun{x: x, program: program, plan: plan, known: map[string]sandbox.Outcome{}}
	report, err := run.grade(ctx)
	return report, run.verdicts, err
}

// ask adds the calls of the plan's checks and the known calls of its scripts. In a run that
// stops early, the calls have the order of the tests.
func (g *GoldenPlan) ask(asked *calls) {
	scripts := g.scripts
	for _, c := range g.checks {
		for g.brief && len(scripts) > 0 && scripts[0].test < c.test {
			for _, call := range scripts[0].calls {
				asked.add(call)
			}
			scripts = scripts[1:]
		}
		asked.add(c.call)
	}
	for _, script := range scripts {
		for _, call := range script.calls {
			asked.add(call)
		}
	}
}

// goldenRun is a run of a plan on a program.
type goldenRun struct {
	x       *Executor
	program sandbox.Program
	plan    *GoldenPlan
	fixed   limits // zero: those of an answer

	known    map[string]sandbox.Outcome // by call
	verdicts []events.GoldenVerdict     // by test
	took     map[int]timed              // by the script of a test
}

// allow returns the limits of some calls.
func (r *goldenRun) allow(calls []string) limits {
	if r.fixed.each != 0 {
		return r.fixed
	}
	t := timed{sum: r.plan.load, most: r.plan.load}
	for _, call := range calls {
		took, ok := r.plan.took[call]
		t.add(took, ok)
	}
	return r.x.allow(t)
}

// allowScripts returns the limits of some scripts themselves.
func (r *goldenRun) allowScripts(scripts []goldenScript) limits {
	if r.fixed.each != 0 {
		return r.fixed
	}
	t := timed{sum: r.plan.load, most: r.plan.load}
	for _, s := range scripts {
		t.sum += s.took.sum
		t.most = max(t.most, s.took.most)
	}
	return r.x.allow(t)
}

// grade makes the plan's calls and judges the tests.
func (r *goldenRun) grade(ctx context.Context) (sandbox.Report, error) {
	asked := newCalls()
	r.plan.ask(asked)
	job := r.allow(asked.list).job(sandbox.JobCalls, r.program, asked.list)
	if r.plan.brief {
		job.StopAtTimeout, job.Enough = true, r.enough(asked)
	}
	job.Digests = r.plan.digests || r.fixed.each != 0
	report, err := r.x.pool.RunCalls(ctx, job)
	if err != nil {
		return sandbox.Report{}, err
	}
	return report, r.judge(ctx, asked, report)
}

// judge judges the checks by a report on the asked calls, and runs the scripts.
func (r *goldenRun) judge(ctx context.Context, asked *calls, report sandbox.Report) error {
	if r.plan.tests == 0 {
		return nil
	}
	r.verdicts, r.took = make([]events.GoldenVerdict, r.plan.tests), map[int]timed{}
	for _, c := range r.plan.checks {
		v := &r.verdicts[c.test]
		v.Verdict, v.Detail = c.judge(report.Outcomes[asked.index[c.call]], r.plan.atol)
	}
	if r.plan.brief {
		r.leaveOut()
	}
	for i, call := range asked.list {
		r.known[call] = report.Outcomes[i]
	}
	late := func(o sandbox.Outcome) bool { return o.Kind == sandbox.TimedOut }
	if r.plan.brief && slices.ContainsFunc(report.Outcomes, late) {
		for _, s := range r.plan.scripts {
			r.verdicts[s.test] = events.GoldenVerdict{Verdict: events.VerdictNotRun, Detail: "a call of another test ran over its time"}
		}
		return nil
	}
	scripts := r.plan.scripts
	if r.plan.brief {
		scripts = r.before(scripts)
	}
	if err := r.apart(ctx, report, scripts); err != nil {
		return err
	}
	return r.inside(ctx, scripts)
}

// enough returns a function that reports, after each reply to the asked calls, whether a
// run that stops early needs no more of them.
func (r *goldenRun) enough(asked *calls) func([]sandbox.Reply) bool {
	// The checks by the reply after which the calls of all tests up to them are made.
	// A script before a check may have a call that is made after that of the check.
	ready, at := make([][]*goldenCheck, len(asked.list)), 0
	scripts := r.plan.scripts
	for i := range r.plan.checks {
		c := &r.plan.checks[i]
		for ; len(scripts) > 0 && scripts[0].test < c.test; scripts = scripts[1:] {
			for _, call := range scripts[0].calls {
				at = max(at, asked.index[call])
			}
		}
		at = max(at, asked.index[c.call])
		ready[at] = append(ready[at], c)
	}
	failed, tests := false, 0
	return func(replies []sandbox.Reply) bool {
		last := len(replies) - 1
		if last == 0 {
			failed, tests = false, 0 // the job is tried again
		}
		for _, c := range ready[last] {
			if tests = c.test + 1; !failed {
				verdict, _ := c.judge(r.x.pool.Outcome(replies[asked.index[c.call]]), r.plan.atol)
				failed = verdict != events.VerdictPass
			}
		}
		return failed && tests >= r.plan.votes
	}
}

// leaveOut marks the checks as not run that a run that stops early leaves out, also where
// they have run.
func (r *goldenRun) leaveOut() {
	failed := false
	for _, c := range r.plan.checks {
		switch v := &r.verdicts[c.test]; {
		case failed && c.test >= r.plan.votes:
			*v = events.GoldenVerdict{Verdict: events.VerdictNotRun, Detail: anEarlierFailed}
		case v.Verdict != events.VerdictPass:
			failed = true
		}
	}
}

const anEarlierFailed = "an earlier test did not pass"

// before returns the scripts before the first check that failed. The others are not run.
func (r *goldenRun) before(scripts []goldenScript) []goldenScript {
	first := r.plan.tests
	for _, c := range r.plan.checks {
		if r.verdicts[c.test].Verdict != events.VerdictPass {
			first = min(first, c.test)
		}
	}
	var left []goldenScript
	for _, s := range scripts {
		if s.test < first {
			left = append(left, s)
		} else {
			r.verdicts[s.test] = events.GoldenVerdict{Verdict: events.VerdictNotRun, Detail: anEarlierFailed}
		}
	}
	return left
}

// digest returns the digest of the value of a call.
func (r *goldenRun) digest(call string) string {
	o := r.known[call]
	return o.Digest()
}

// inside runs the scripts that cannot run apart from the program in its process. They
// have a child of their own, because a script holds expectations.
func (r *goldenRun) inside(ctx context.Context, scripts []goldenScript) error {
	var inside []goldenScript
	var sources []string
	for _, s := range scripts {
		switch {
		case s.fit:
		case s.returned != "" && s.returned == r.digest(s.calls[0]):
			r.verdicts[s.test] = events.GoldenVerdict{Verdict: events.VerdictPass}
		default:
			inside = append(inside, s)
			sources = append(sources, s.source)
		}
	}
	if len(inside) == 0 {
		return nil
	}
	s, err := r.x.pool.Do(ctx, r.allowScripts(inside).job(sandbox.JobScripts, r.program, sources))
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
			v.Verdict, v.Detail = judge(r.x.pool.Outcome(s.Replies[i]), literal.Bool(true))
		}
		r.verdicts[script.test] = v
		if i < len(s.Replies) {
			r.took[script.test] = timed{sum: s.Replies[i].Took, most: s.Replies[i].Took}
		}
	}
	return nil
}

// RunTruth makes calls on a ground truth, with the time limits of a ground truth.
func (x *Executor) RunTruth(ctx context.Context, truth sandbox.Program, calls []string) (sandbox.Report, error) {
	job := x.allowTruth().job(sandbox.JobCalls, truth, calls)
	job.Digests = true
	return x.pool.RunUncached(ctx, job)
}

// Check runs golden tests on a program: PlanGolden without a ground truth, then
// Grade.
func (x *Executor) Check(ctx context.Context, code, entry string, tests []string) ([]events.GoldenVerdict, error) {
	plan, err := x.PlanGolden(ctx, sandbox.Program{EntryPoint: entry}, tests, 0)
	if err != nil {
		return nil, err
	}
	return x.Grade(ctx, sandbox.Program{Code: code, EntryPoint: entry}, plan)
}

// CheckTruth runs golden tests on the ground truth that they were written for. A
// script that it passes only inside its process runs there.
func (x *Executor) CheckTruth(ctx context.Context, code, entry string, tests []string) ([]events.GoldenVerdict, error) {
	truth := sandbox.Program{Code: code, EntryPoint: entry}
	plan, err := x.PlanGolden(ctx, truth, tests, 0)
	if err != nil {
		return nil, err
	}
	return x.Grade(ctx, truth, plan)
}
