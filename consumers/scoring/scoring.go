package scoring

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"codea1/consumers/evaluation"
	"codea1/consumers/execution/benchmark"
	"codea1/consumers/execution/evalplus"
	"codea1/consumers/execution/grading"
	"codea1/consumers/execution/probes"
	"codea1/consumers/execution/published"
	"codea1/consumers/execution/sandbox"
	"codea1/consumers/execution/sandboxfusion"
	"codea1/events"
	"codea1/events/commandline"
	"codea1/events/files"
	"codea1/events/rundir"
)

// Scoring scores evaluations.
type Scoring struct {
	Sandbox  *sandbox.Flags
	JSON     bool      // print JSON objects instead of tables
	Out      io.Writer // for the figures
	Progress io.Writer // for the problems and samples that do not count in them
	Mutants  string    // Builtin or CosmicRay, which makes the mutants of Tests; empty: Builtin
	Logger   *slog.Logger
}

// Names of the makers of mutants.
const (
	Builtin   = "builtin"
	CosmicRay = "cosmic-ray"
)

// Evaluation is a run that has sampled all its groups.
type Evaluation struct {
	Dir      string // of the run
	Rows     map[string]*evalplus.Problem
	Gathered *evaluation.Gathered
}

// answerOf returns the result of an answer. The first tests are the base tests.
func answerOf(g *grading.Grade, base, tests int) evaluation.Answer {
	a := evaluation.Answer{Code: g.Code, Behaviour: grading.Behaviour(g.Loads, g.Verdicts), Reason: g.FirstReason()}
	a.Base, a.Plus = evalplus.Passed(g.Loads, g.Verdicts, base, tests)
	return a
}

// graded are the results of a benchmark and its suites of tests.
type graded struct {
	evaluation.Results
	suites []evaluation.Suite
}

// print prints the figures by benchmark.
func (s *Scoring) print(benchmarks map[string]graded, tasks int) error {
	for _, name := range slices.Sorted(maps.Keys(benchmarks)) {
		var sums []evaluation.Summary
		for _, suite := range benchmarks[name].suites {
			sum := evaluation.Summarize(benchmarks[name].Sorted(), suite)
			sum.Benchmark = name
			sums = append(sums, sum)
		}
		tasks -= len(benchmarks[name].Results)
		print := evaluation.PrintSummaries
		if s.JSON {
			print = evaluation.EncodeSummaries
		}
		if err := print(s.Out, sums); err != nil {
			return err
		}
	}
	if tasks > 0 && !s.JSON {
		fmt.Fprintf(s.Out, "%d problems have no samples and do not count\n", tasks)
	}
	return nil
}

// Tests runs the first k tests of the suites of an evaluation on the ground truths and
// their mutants, and prints the figures. It adds a line per suite to a file of the run
// directory, and leaves out the suites that the file has with the same mutants.
func (s *Scoring) Tests(ctx context.Context, e *Evaluation, suites, k int) (err error) {
	done := map[string]*evaluation.TestResult{}
	file, err := files.Continue(rundir.Tests(e.Dir), func(line []byte) error {
		r, err := evaluation.ReadTestResult(line)
		if err == nil {
			done[r.Key()] = r
		}
		return err
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	pool, err := sandboxfusion.Open(ctx, s.Sandbox, s.Logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	maker, engine := probes.Mutants, ""
	if s.Mutants == CosmicRay {
		maker, engine = probes.CosmicRay, CosmicRay
	}
	key := func(id string, suite int) string {
		return (&evaluation.TestResult{ID: id, Suite: suite, Engine: engine}).Key()
	}
	masked, err := benchmark.Judge(ctx, pool, executed(e.Gathered), suites, k, maker,
		func(id string, suite int) bool { return done[key(id, suite)] != nil },
		func(on benchmark.SuiteResult) error {
			r := &evaluation.TestResult{ID: on.ID, Suite: on.Suite, Written: on.Written, Passed: on.Passed, Mutants: on.Mutants, Survived: on.Survived, Branches: on.Branches, Taken: on.Taken, Lines: on.Lines, TakenLines: on.TakenLines, Engine: engine}
			done[r.Key()] = r
			return json.NewEncoder(file).Encode(r)
		})
	if err != nil {
		return fmt.Errorf("%w; codea1 eval --resume %s continues", err, commandline.Word(e.Dir))
	}
	s.sayLost(masked, e.Gathered.Dropped)
	bySource := map[string][]*evaluation.TestResult{}
	for _, key := range slices.Sorted(maps.Keys(done)) {
		if row := e.Rows[done[key].ID]; row != nil && done[key].Engine == engine {
			bySource[row.Source] = append(bySource[row.Source], done[key])
		}
	}
	for _, source := range slices.Sorted(maps.Keys(bySource)) {
		sum := evaluation.SummarizeTests(bySource[source], k)
		sum.Benchmark = source
		print := sum.Print
		if s.JSON {
			print = func(out io.Writer) error { return json.NewEncoder(out).Encode(sum) }
		}
		if err := print(s.Out); err != nil {
			return err
		}
	}
	return nil
}

// executed returns the executed groups of an evaluation.
func executed(gathered *evaluation.Gathered) []benchmark.Group {
	var groups []benchmark.Group
	for _, g := range gathered.Groups() {
		groups = append(groups, benchmark.Group(g))
	}
	return groups
}

// choose runs the first k tests of the suites about the answers of each problem on all of
// these answers.
func (s *Scoring) choose(ctx context.Context, e *Evaluation, k int) (choices map[string]*benchmark.Choice, err error) {
	pool, err := sandboxfusion.Open(ctx, s.Sandbox, s.Logger)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	choices, err = benchmark.Choices(ctx, pool, rundir.Choices(e.Dir), executed(e.Gathered), k)
	if err != nil {
		return nil, fmt.Errorf("%w; codea1 eval --resume %s continues", err, commandline.Word(e.Dir))
	}
	return choices, nil
}

// Answers writes the results and the samples into the run directory, and prints the
// figures. With k, the first k tests of the suites choose among the answers.
func (s *Scoring) Answers(ctx context.Context, e *Evaluation, k int) error {
	var choices map[string]*benchmark.Choice
	if k > 0 {
		var err error
		if choices, err = s.choose(ctx, e, k); err != nil {
			return err
		}
	}
	var resultLines, sampleLines strings.Builder
	results, samples := json.NewEncoder(&resultLines), json.NewEncoder(&sampleLines)
	bySource, masked := map[string]graded{}, 0
	for _, group := range e.Gathered.Groups() {
		row := e.Rows[group.Problem.ID]
		if row == nil {
			return fmt.Errorf("%s has no problem %s, which the log has", rundir.Benchmark(e.Dir), group.Problem.ID)
		}
		tests := len(group.Problem.Golden)
		r := evaluation.Result{ID: row.ID, All: row.BaseTests == 0}
		for i, code := range group.Codes {
			answer := &group.Executed.Answers[i]
			if err := samples.Encode(evalplus.Sample{TaskID: row.ID, Solution: code}); err != nil {
				return err
			}
			if answer.Failure != "" {
				masked++
				continue
			}
			grade := &grading.Grade{Code: grading.CodeHash(code), Loads: answer.Loads, LoadError: answer.LoadError, Verdicts: answer.Golden}
			r.Answers = append(r.Answers, answerOf(grade, cmp.Or(row.BaseTests, tests), tests))
		}
		if len(r.Answers) == 0 {
			continue
		}
		if c := choices[r.ID]; c != nil {
			n := evaluation.Choose(c.Of(r.Codes()))
			r.Chosen = &n
		}
		if err := results.Encode(r); err != nil {
			return err
		}
		if bySource[row.Source].Results == nil {
			suites := evaluation.Suites
			if row.BaseTests == 0 {
				suites = evaluation.OneSuite
			}
			bySource[row.Source] = graded{evaluation.Results{}, suites}
		}
		bySource[row.Source].Results[r.ID] = r
	}
	err := errors.Join(
		rundir.WriteFile(rundir.Results(e.Dir), []byte(resultLines.String()), rundir.FileMode),
		rundir.WriteFile(rundir.Samples(e.Dir), []byte(sampleLines.String()), rundir.FileMode))
	if err != nil {
		return err
	}
	s.sayLost(masked, e.Gathered.Dropped)
	return s.print(bySource, len(e.Rows))
}

// Published grades the responses to a published benchmark in its own way, and prints the
// figures. completion says that the model continued the text of a prompt. It adds a line
// per problem to the results of the run directory, and leaves out the problems that the
// file has.
func (s *Scoring) Published(ctx context.Context, e *Evaluation, completion bool) error {
	tasks, err := published.ReadFile(rundir.Published(e.Dir))
	if err != nil {
		return err
	}
	byID := make(map[string]published.Task, len(tasks))
	for _, t := range tasks {
		byID[t.ID()] = t
	}
	f := gradesPublished(tasks)
	var lines strings.Builder
	samples, source := json.NewEncoder(&lines), ""
	for _, group := range e.Gathered.Groups() {
		id := group.Problem.ID
		task := byID[id]
		if task == nil || e.Rows[id] == nil {
			return fmt.Errorf("%s has no problem %s, which the log has", rundir.Published(e.Dir), id)
		}
		source = e.Rows[id].Source
		for _, text := range group.Texts {
			answer := task.Answer(text, completion)
			f.samples[id] = append(f.samples[id], task.Program(answer, completion))
			row := map[string]string{"task_id": id, "solution": answer}
			if completion {
				row = map[string]string{"task_id": id, "completion": answer}
			}
			if err := samples.Encode(row); err != nil {
				return err
			}
		}
	}
	if err := rundir.WriteFile(rundir.Samples(e.Dir), []byte(lines.String()), rundir.FileMode); err != nil {
		return err
	}
	results, err := s.grade(ctx, f, rundir.Results(e.Dir))
	if err != nil {
		return fmt.Errorf("%w; codea1 eval --resume %s continues", err, commandline.Word(e.Dir))
	}
	s.sayLost(0, e.Gathered.Dropped)
	return s.print(map[string]graded{source: {results, f.suites}}, len(e.Rows))
}

// sayLost names the samples and groups that do not count in the figures.
func (s *Scoring) sayLost(masked int, dropped []*events.GroupDropped) {
	if masked > 0 {
		fmt.Fprintf(s.Progress, "%d samples do not count: the sandbox failed on them\n", masked)
	}
	if len(dropped) > 0 {
		fmt.Fprintf(s.Progress, "%d problems do not count; first: %s: %s\n", len(dropped), dropped[0].Reason, dropped[0].Detail)
	}
}
