package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"

	py "codea1/producers/problems/internal/minipy"
)

// runner executes programs for their tests and calls. It prints one JSON line
// per program: the failing tests, and each call's value as a compact literal or
// the name of the exception.
const runner = `
import json, sys
def literal(v):
    if isinstance(v, list):
        return '[' + ','.join(map(literal, v)) + ']'
    return repr(v)
def outcome(f, args):
    try:
        v = f(*args)
    except Exception as e:
        return type(e).__name__
    return '<stream>' if hasattr(v, '__next__') else literal(v)
for line in sys.stdin:
    job = json.loads(line)
    scope = {}
    exec(job['source'], scope)
    failing = []
    for test in job['tests'] or []:
        try:
            exec(test, scope)
        except Exception as e:
            failing.append(test + ': ' + type(e).__name__)
    calls = [outcome(scope['solve'], eval(args)) for args in job['calls'] or []]
    print(json.dumps({'failing': failing, 'calls': calls}))
`

type pythonJob struct {
	Source string   `json:"source"`
	Tests  []string `json:"tests"`
	Calls  []string `json:"calls"` // argument lists as Python lists
}

type pythonResult struct {
	Failing []string `json:"failing"`
	Calls   []string `json:"calls"`
}

// runPython runs all jobs in one process. Python 3 is a requirement of the
// project, so its absence fails the test.
func runPython(t *testing.T, jobs []pythonJob) []pythonResult {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatalf("the project needs Python 3: %v", err)
	}
	var input bytes.Buffer
	encoder := json.NewEncoder(&input)
	for _, job := range jobs {
		if err := encoder.Encode(job); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), python, "-I", "-c", runner)
	command.Stdin = &input
	output, err := command.Output()
	if err != nil {
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			t.Fatalf("python: %v\n%s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(output))
	results := make([]pythonResult, len(jobs))
	for i := range results {
		if err := decoder.Decode(&results[i]); err != nil {
			t.Fatalf("python's result %d of %d: %v", i, len(jobs), err)
		}
	}
	return results
}

func TestTruthsPassTheirGoldenTestsInPython(t *testing.T) {
	training, heldOut := Sets()
	var jobs []pythonJob
	for _, p := range training {
		jobs = append(jobs, pythonJob{Source: p.Solution(), Tests: p.Golden(nil)})
	}
	for _, p := range heldOut {
		jobs = append(jobs, pythonJob{Source: p.Solution(), Tests: p.Golden(p.Mutants())})
	}
	for i, result := range runPython(t, jobs) {
		if len(result.Failing) > 0 {
			t.Errorf("%s\nfails %v", jobs[i].Source, result.Failing)
		}
	}
}

// The evaluator agrees with Python on ground truths and mutants alike: on what
// they return and on what they raise.
func TestEvaluatorAgreesWithPython(t *testing.T) {
	const inputsPerProgram = 6
	r := rand.New(rand.NewPCG(1, 2))
	training, heldOut := Sets()
	var jobs []pythonJob
	var want [][]string
	for _, p := range append(training[:len(training):len(training)], heldOut...) {
		functions := []*py.Func{p.Func}
		if mutants := p.Mutants(); len(mutants) > 0 {
			functions = append(functions, mutants[r.IntN(len(mutants))].Func, mutants[r.IntN(len(mutants))].Func)
		}
		for _, f := range functions {
			job := pythonJob{Source: f.Source()}
			var results []string
			for i := range inputsPerProgram {
				input := p.Domain.Draw(r, i == 0)
				if i == 1 {
					input = p.Domain.Probes[r.IntN(len(p.Domain.Probes))]
				}
				job.Calls = append(job.Calls, py.Literal(py.List(input)))
				value, err := f.Call(input...)
				if err != nil {
					results = append(results, err.Error())
				} else {
					results = append(results, py.Literal(value))
				}
			}
			jobs, want = append(jobs, job), append(want, results)
		}
	}
	for i, result := range runPython(t, jobs) {
		if diff := cmp.Diff(want[i], result.Calls); diff != "" {
			t.Errorf("%s\ncalled with %v (-ours +Python):\n%s", jobs[i].Source, jobs[i].Calls, diff)
		}
	}
	t.Logf("%d programs, %d calls", len(jobs), len(jobs)*inputsPerProgram)
}
