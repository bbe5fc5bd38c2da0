package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
)

// Execute runs the tests of a group's suites on its ground truth and keeps those
// that have an expectation. Then it runs each answer on the kept tests of its own
// suites, on the historical tests, and on the golden tests if the problem has some.
// Where the plan asks for it, each answer then runs on the tests of all suites, and the
// kept tests on probes of the ground truth. The answers to a predict problem are compared
// with literals, and nothing is run.
//
// An answer has its Failure set if the sandbox failed on it. If the sandbox failed
// on the ground truth or on every answer, Execute returns a *sandbox.Error: nothing
// is known of the group. ErrGroundTruth means that the group can never be executed.
func (x *Executor) Execute(ctx context.Context, in *events.TestsSampled) (*events.CodeExecuted, error) {
	problem := &in.Posed.Problem
	if len(problem.Predict) > 0 {
		return predict(in)
	}
	historical, err := readHistorical(in.Posed.Historical)
	if err != nil {
		return nil, err
	}
	suites, err := x.readSuites(ctx, in)
	if err != nil {
		return nil, err
	}
	golden, err := x.PlanGolden(ctx, sandbox.Program{Code: problem.Solution, EntryPoint: problem.EntryPoint}, problem.Golden, problem.Atol)
	if err != nil {
		return nil, err
	}
	out := &events.CodeExecuted{
		Plan: in.Posed.Plan, ProblemID: problem.ID, CodeVersion: in.CodeVersion, TestVersion: in.Version,
		Given: len(in.Posed.Given) > 0, Historical: in.Posed.Historical,
		Answers: make([]events.ExecutedAnswer, len(in.Codes)),
	}
	failures := make([]error, len(in.Codes))
	var running errgroup.Group
	running.SetLimit(x.config.Workers)
	for i, code := range in.Codes {
		running.Go(func() error {
			program := sandbox.Program{Code: code, EntryPoint: problem.EntryPoint}
			answer, err := x.answer(ctx, program, suites.validate(in.Suites[i]), suites.truth, historical, golden)
			var failed *sandbox.Error
			if errors.As(err, &failed) {
				out.Answers[i] = events.ExecutedAnswer{Failure: sandbox.Clip(err.Error())}
				failures[i] = err
				return nil
			}
			measure(answer.Suites, in.Suites[i])
			out.Answers[i] = answer
			return err
		})
	}
	if err := running.Wait(); err != nil {
		return nil, err
	}
	if out.Plan.Cross {
		if err := x.cross(ctx, problem, in.Codes, suites.truth, out, failures); err != nil {
			return nil, err
		}
	}
	if err := x.probe(ctx, problem, suites.truth, out); err != nil {
		return nil, err
	}
	for _, failure := range failures {
		if failure == nil {
			return out, nil
		}
	}
	return nil, errors.Join(failures...)
}

// expectation is a call with the value that it must return.
type expectation struct {
	call string
	want literal.Value
}

func readHistorical(tests []events.HistoricalTest) ([]expectation, error) {
	expectations := make([]expectation, len(tests))
	for i, t := range tests {
		want, err := literal.Parse(t.Expected)
		if err != nil {
			return nil, fmt.Errorf("%w: historical test %d, %s: %w", ErrGroundTruth, i, sandbox.Clip(t.Call), err)
		}
		expectations[i] = expectation{t.Call, want}
	}
	return expectations, nil
}

// groupSuites are the parsed suites of a group and their calls on the ground truth.
type groupSuites struct {
	parsed map[string][]statement // by text
	truth  *truthRun
}

// truthRun is the result of a ground truth's run.
type truthRun struct {
	entry    string
	facts    truthFacts
	load     time.Duration
	outcomes map[string]sandbox.Outcome // by call
}

// spell writes a test's call in a spelling that equal calls share.
func (t *truthRun) spell(st *statement) string {
	call, each := st.spelling(t.entry)
	if each {
		if bound, ok := t.facts.bind(call); ok {
			return bound
		}
	}
	if len(call) == 0 {
		return st.Call
	}
	return fmt.Sprint(call)
}

// validate returns the checked tests of each suite of an answer. Two suites with
// the same text are checked separately: each has its own verdicts.
func (g *groupSuites) validate(row []events.Completion) [][]checkedTest {
	suites := make([][]checkedTest, len(row))
	for i := range row {
		suites[i] = validate(g.parsed[SuiteText(row[i].Text)], g.truth)
	}
	return suites
}

// readSuites reads the suites of a group and runs each of their calls once on the
// ground truth.
func (x *Executor) readSuites(ctx context.Context, in *events.TestsSampled) (*groupSuites, error) {
	problem := &in.Posed.Problem
	texts := newCalls()
	for _, row := range in.Suites {
		for i := range row {
			texts.add(SuiteText(row[i].Text))
		}
	}
	if len(texts.list) == 0 {
		return &groupSuites{truth: &truthRun{}}, nil
	}
	// As much time as the answers have together. The calls of all suites run in
	// turn, so that one answer's suites with calls that hang leave time for the
	// suites of the others.
	budget := x.config.JobTimeout * time.Duration(len(in.Suites))
	parsed, err := x.parseSuites(ctx, problem.EntryPoint, texts.list, false, budget)
	if err != nil {
		return nil, err
	}
	asked, literals := newCalls(), true
	inTurn(parsed, func(st *statement) {
		if st.Reason == "" {
			asked.add(st.Call)
			literals = literals && st.isLiteral()
		}
	})
	truth, err := x.askTruth(ctx, problem, asked.list, literals, budget)
	if err != nil {
		return nil, err
	}
	suites := &groupSuites{parsed: make(map[string][]statement, len(parsed)), truth: truth}
	for i, text := range texts.list {
		suites.parsed[text] = parsed[i]
	}
	return suites, nil
}

// truthCalls is the number of calls that one process of the ground truth runs. It
// is a constant, so that the values of a ground truth that remembers calls do not
// depend on the number of cores.
const truthCalls = 256

// truthValueBytes bounds the values that the ground truth returns. It bounds more
// than the text: unusable checks the text against maxStatedBytes later.
const truthValueBytes = 4 * maxStatedBytes

// askTruth runs each call on the ground truth, and once more in a varied process if its
// values may depend on that. They cannot if the program cannot look at it and literals
// is true: each argument has a literal text and no set. budget is for all calls together; each part has its share.
func (x *Executor) askTruth(ctx context.Context, problem *events.Problem, calls []string, literals bool, budget time.Duration) (*truthRun, error) {
	parts := max(1, (len(calls)+truthCalls-1)/truthCalls) // without calls: shows whether it loads
	outcomes, facts, loads := make([]sandbox.Outcome, len(calls)), make([]truthFacts, parts), make([]time.Duration, parts)
	asking, ctx := errgroup.WithContext(ctx)
	for i := range parts {
		from, to := i*len(calls)/parts, (i+1)*len(calls)/parts
		asking.Go(func() error {
			part := sandbox.Job{
				Code: problem.Solution, Entry: problem.EntryPoint, Items: slices.Insert(slices.Clone(calls[from:to]), 0, describeTruth),
				Budget: max(x.config.JobTimeout, budget/time.Duration(parts)), ValueBytes: truthValueBytes,
			}
			report, err := x.pool.RunCalls(ctx, part)
			if err == nil && !report.Loads {
				err = fmt.Errorf("%w of problem %s does not load: %s", ErrGroundTruth, problem.ID, report.LoadError)
			}
			if err != nil {
				return err
			}
			facts[i], loads[i] = readFacts(report.Outcomes[0]), report.LoadTook
			copy(outcomes[from:to], report.Outcomes[1:])
			if literals && !facts[i].varies {
				return nil
			}
			part.Items = calls[from:to]
			return x.vary(ctx, part, report.LoadTook, outcomes[from:to])
		})
	}
	if err := asking.Wait(); err != nil {
		return nil, err
	}
	truth := &truthRun{entry: problem.EntryPoint, facts: facts[0], load: slices.Max(loads), outcomes: make(map[string]sandbox.Outcome, len(calls))}
	for i, call := range calls {
		truth.outcomes[call] = outcomes[i]
	}
	return truth, nil
}

// vary runs the calls of a part of the ground truth that returned once more, in a
// varied process. It takes away each value that differs there: a value that depends on
// addresses, the hash seed, the time or chance is no expectation.
func (x *Executor) vary(ctx context.Context, part sandbox.Job, load time.Duration, outcomes []sandbox.Outcome) error {
	var returned []int
	calls := part.Items
	part.Items, part.Varied = nil, true
	took := timed{sum: load, most: load}
	for i, o := range outcomes {
		if o.Kind == sandbox.Returned || o.Kind == sandbox.Raised {
			returned = append(returned, i)
			part.Items = append(part.Items, calls[i])
			took.add(o.Took, true)
		}
	}
	if len(returned) == 0 {
		return nil
	}
	own := x.allow(took)
	part.Each, part.Budget = own.each, max(part.Budget, own.budget)
	report, err := x.pool.RunCalls(ctx, part)
	if err != nil {
		return err
	}
	for i, at := range returned {
		first, second := &outcomes[at], report.Outcomes[i]
		switch {
		case first.Value == nil:
		case second.Kind != sandbox.Returned:
			*first = sandbox.Outcome{Kind: second.Kind, Detail: "in a second process: " + second.Detail}
		case second.Value == nil || literal.Key(first.Value) != literal.Key(second.Value):
			*first = sandbox.Outcome{Kind: sandbox.Returned, Detail: "another value in a second process: it depends on " + unsteady}
		}
	}
	return nil
}

// unsteady names the causes of values that differ between two runs. No kept test
// depends on them.
const unsteady = "addresses, the hash seed, the time or chance"

// answer runs one answer on its suites, the historical and the golden tests. A call
// that several tests share runs once.
func (x *Executor) answer(ctx context.Context, program sandbox.Program, suites [][]checkedTest, truth *truthRun, historical []expectation, golden *GoldenPlan) (events.ExecutedAnswer, error) {
	asked := newCalls()
	for _, h := range historical {
		asked.add(h.call)
	}
	golden.ask(asked)
	inTurn(suites, func(t *checkedTest) {
		if t.want != nil {
			asked.add(t.Call)
		}
	})
	load := max(truth.load, golden.load)
	took := timed{sum: load, most: load}
	for _, call := range asked.list {
		o, ok := truth.outcomes[call]
		if !ok {
			o.Took, ok = golden.took[call]
		}
		took.add(o.Took, ok)
	}
	report, err := x.pool.RunCalls(ctx, x.allow(took).job(sandbox.JobCalls, program, asked.list))
	if err != nil {
		return events.ExecutedAnswer{}, err
	}
	answer := events.ExecutedAnswer{Loads: report.Loads, LoadError: report.LoadError}
	for _, h := range historical {
		verdict, _ := judge(report.Outcomes[asked.index[h.call]], h.want)
		answer.Historical = append(answer.Historical, verdict)
	}
	for _, suite := range suites {
		tests := make([]events.ExecutedTest, len(suite))
		for i, t := range suite {
			if t.want != nil && report.Loads {
				t.Verdict, t.Detail = judge(report.Outcomes[asked.index[t.Call]], t.want)
			}
			tests[i] = t.ExecutedTest
		}
		answer.Suites = append(answer.Suites, events.ExecutedSuite{Tests: tests})
	}
	run := goldenRun{x: x, program: program, plan: golden, known: map[string]sandbox.Outcome{}}
	err = run.judge(ctx, asked, report)
	answer.Golden = run.verdicts
	return answer, err
}

// measure fills in the counts of characters that the reward needs.
func measure(suites []events.ExecutedSuite, responses []events.Completion) {
	for i := range suites {
		text := responses[i].Text
		suites[i].Chars = utf8.RuneCountInString(text)
		for _, r := range text {
			if !isPrintable(r) {
				suites[i].Unprintable++
			}
		}
	}
}

// isPrintable reports whether r is in Python's string.printable.
func isPrintable(r rune) bool {
	return r >= ' ' && r <= '~' || strings.ContainsRune("\t\n\r\v\f", r)
}
