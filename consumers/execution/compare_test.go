package execution

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"codea1/consumers/execution/internal/sandboxtest"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
)

// The benchmarks here pair this package with another way of doing the same job:
// turn by turn, in one run, on the same interpreter, with as many at a time. On
// a machine that others use, the ratios hold where the figures do not; x-cpu,
// of CPU seconds of all processes concerned, holds best.
//
//	go test ./consumers/execution -run '^$' -bench 'AnswerJobs|SmallJobs'
//
// Limits. Ours cannot take less than a fork and the compiling of the program
// (about half a millisecond of one core on an idle machine) and a few microseconds
// of each call (10 to 20 where it is compiled, see call.go), and not less than
// Python's ast takes to read the suites (about 8 us a test); theirs not less than
// the start of Python (about 10 ms with the site module, and several times that
// where packages hook into every start: look at BenchmarkProcess first). The
// work of the program itself is the same on both sides. It brings the ratio down to 1
// as it grows; here it is next to nothing, as in most tests of functions.
//
// CODEA1_SANDBOXFUSION names a checkout of SandboxFusion. Its own runner is
// then run instead of the one that testdata/compare/fusion.py rebuilds, and
// CODEA1_SANDBOXFUSION_PYTHON a Python that has the modules that it imports.

const importHeader = "import math\nimport re\nimport heapq\nimport itertools\nfrom typing import List, Dict, Optional\nfrom collections import Counter, defaultdict, deque\n"

// BenchmarkAnswerJobs is the execution of a training group (8 answers with 8
// suites of 8 tests each, and 8 historical tests), reading the suites and running
// the ground truth included, per answer. Against it stands
// testdata/compare/reference.py, one process per answer that isolates nothing.
func BenchmarkAnswerJobs(b *testing.B) {
	for name, header := range map[string]string{"plain": "", "imports": importHeader} {
		b.Run(name, func(b *testing.B) {
			x := openExecutor(b, sandbox.Config{CacheBytes: -1})
			in := answerGroup(header)
			group := map[string]any{"truth": in.Posed.Problem.Solution, "codes": in.Codes}
			var suites [][]string
			for _, row := range in.Suites {
				var texts []string
				for _, suite := range row {
					texts = append(texts, suite.Text)
				}
				suites = append(suites, texts)
			}
			var historical [][2]string
			for _, h := range in.Posed.Historical {
				historical = append(historical, [2]string{h.Call, h.Expected})
			}
			group["suites"], group["historical"] = suites, historical
			reference := startRunner(b, "reference.py", x.pool.Describe().Python, group)
			var ours, theirs effort
			for b.Loop() {
				theirs.add(b, reference.cpu, func() {
					answers := len(in.Codes)
					if got, want := reference.ask(b, "go", 2), []int{answers * 64, answers * (64 + 8 - 1)}; !slices.Equal(got, want) {
						b.Fatalf("valid and passed: %d, want %d", got, want)
					}
				})
				ours.add(b, func() time.Duration { return sandboxtest.ChildrenCPU(b) }, func() {
					out, err := x.Execute(b.Context(), in)
					if err != nil {
						b.Fatal(err)
					}
					requireAllKept(b, out)
				})
			}
			report(b, "answers", len(in.Codes), &ours, &theirs)
		})
	}
}

// answerGroup is a group with tests that are all different and all right. Each of its
// answers fails some.
func answerGroup(header string) *events.TestsSampled {
	const answers, suites, tests = 8, 8, 8
	truth := header + "def f(xs, k=1):\n    return [x * k for x in sorted(xs, reverse=True)]\n"
	var historical []events.HistoricalTest
	for i := range tests {
		historical = append(historical, events.HistoricalTest{Call: fmt.Sprintf("f([%d, 1])", 1000+i), Expected: fmt.Sprintf("[%d, 1]", 1000+i), Count: 1})
	}
	var codes []string
	var rows [][]string
	for i := range answers {
		codes = append(codes, strings.Replace(truth, "sorted(xs", fmt.Sprintf("sorted(xs if %d not in xs else []", 2+64*i), 1))
		var row []string
		for j := range suites {
			text := "```python\n"
			for k := range tests {
				n := (i*suites+j)*tests + k + 2
				text += fmt.Sprintf("assert f([0, %d, 1], k=2) == [%d, 2, 0]\n", n, 2*n)
			}
			row = append(row, text+"```\n")
		}
		rows = append(rows, row)
	}
	return sampled(truth, historical, codes, rows)
}

func requireAllKept(b *testing.B, out *events.CodeExecuted) {
	for _, answer := range out.Answers {
		failed := 0
		for _, suite := range answer.Suites {
			for _, test := range suite.Tests {
				if test.Status != events.StatusKept || test.Wrong {
					b.Fatalf("%s: %s %s", test.Source, test.Status, test.Detail)
				}
				if test.Verdict != events.VerdictPass {
					failed++
				}
			}
		}
		if failed != 1 {
			b.Fatalf("an answer fails %d tests, want 1", failed)
		}
	}
}

// BenchmarkSmallJobs is the smallest job: define a function, eight asserts.
// Against it stands SandboxFusion's way of running Python, without its HTTP server.
// The runner that is rebuilt for it leaves out other work of the real one (its
// models, its log, its look for the process with psutil), and takes two thirds of
// the time.
func BenchmarkSmallJobs(b *testing.B) {
	for name, header := range map[string]string{"plain": "", "imports": importHeader} {
		b.Run(name, func(b *testing.B) {
			x := openExecutor(b, sandbox.Config{CacheBytes: -1})
			const batch = 64
			definition := header + "def f(x):\n    return [x] * 3\n"
			source := definition
			var tests []string
			for i := range 8 {
				tests = append(tests, fmt.Sprintf("assert f(%d) == [%d, %d, %d]", i, i, i, i))
				source += tests[i] + "\n"
			}
			program := sandbox.Program{Code: definition, EntryPoint: "f"}
			plan, err := x.PlanGolden(b.Context(), program, tests, 0)
			if err != nil {
				b.Fatal(err)
			}
			fusion := startRunner(b, "fusion.py", x.pool.Describe().Python, source)
			var ours, theirs effort
			for b.Loop() {
				theirs.add(b, fusion.cpu, func() {
					if succeeded := fusion.ask(b, strconv.Itoa(batch), 1); succeeded[0] != batch {
						b.Fatalf("%d of %d jobs succeeded", succeeded, batch)
					}
				})
				ours.add(b, func() time.Duration { return sandboxtest.ChildrenCPU(b) }, func() { runSmall(b, x, program, plan, batch) })
			}
			report(b, "jobs", batch, &ours, &theirs)
		})
	}
}

func runSmall(b *testing.B, x *Executor, program sandbox.Program, plan *GoldenPlan, jobs int) {
	var running errgroup.Group
	running.SetLimit(2 * runtime.GOMAXPROCS(0)) // one runs, one is judged
	for range jobs {
		running.Go(func() error {
			verdicts, err := x.Grade(b.Context(), program, plan)
			if err != nil {
				return err
			}
			for _, v := range verdicts {
				if v.Verdict != events.VerdictPass {
					return fmt.Errorf("%s %s", v.Verdict, v.Detail)
				}
			}
			return nil
		})
	}
	if err := running.Wait(); err != nil {
		b.Fatal(err)
	}
}

// runner is one of the programs of testdata/compare, running.
type runner struct {
	in   io.Writer
	out  *bufio.Reader
	used time.Duration // of CPU, so far
}

func startRunner(b *testing.B, name, python string, work any) *runner {
	arguments := []string{"testdata/compare/" + name, python, strconv.Itoa(runtime.GOMAXPROCS(0))}
	host := python
	if checkout := os.Getenv("CODEA1_SANDBOXFUSION"); checkout != "" {
		arguments = append(arguments, checkout)
		if own := os.Getenv("CODEA1_SANDBOXFUSION_PYTHON"); own != "" {
			host = own
		}
	}
	// Not b.Context, which is done before the cleanup that waits.
	command := exec.CommandContext(context.WithoutCancel(b.Context()), host, arguments...)
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close() // which ends it
		if err := command.Wait(); err != nil {
			b.Error(err)
		}
	})
	if err := json.NewEncoder(in).Encode(work); err != nil {
		b.Fatal(err)
	}
	return &runner{in: in, out: bufio.NewReader(out)}
}

func (r *runner) cpu() time.Duration { return r.used }

// ask sends a line and returns the counts of the answer.
func (r *runner) ask(b *testing.B, line string, counts int) []int {
	if _, err := fmt.Fprintln(r.in, line); err != nil {
		b.Fatal(err)
	}
	answer, err := r.out.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	words := strings.Fields(answer)
	if len(words) != counts+1 {
		b.Fatalf("it answers %q", answer)
	}
	var found []int
	for _, word := range words[:counts] {
		n, err := strconv.Atoi(word)
		if err != nil {
			b.Fatal(err)
		}
		found = append(found, n)
	}
	seconds, err := strconv.ParseFloat(words[counts], 64)
	if err != nil {
		b.Fatal(err)
	}
	r.used += time.Duration(seconds * float64(time.Second))
	return found
}

// effort adds up the time that one side took.
type effort struct{ wall, cpu time.Duration }

// add does work. used returns the CPU time of the other processes concerned.
func (e *effort) add(b *testing.B, used func() time.Duration, work func()) {
	cpu, began := used()+sandboxtest.CPU(b), time.Now()
	work()
	e.wall += time.Since(began)
	e.cpu += used() + sandboxtest.CPU(b) - cpu
}

func report(b *testing.B, unit string, batch int, ours, theirs *effort) {
	done := float64(b.N * batch)
	b.ReportMetric(done/ours.wall.Seconds(), unit+"/s")
	b.ReportMetric(done/theirs.wall.Seconds(), "their-"+unit+"/s")
	b.ReportMetric(theirs.wall.Seconds()/ours.wall.Seconds(), "x-wall")
	b.ReportMetric(theirs.cpu.Seconds()/ours.cpu.Seconds(), "x-cpu")
}

// BenchmarkExecute is a group of a training step: ground truth, answers and
// suites.
func BenchmarkExecute(b *testing.B) {
	for _, size := range []struct{ answers, suites, tests int }{{4, 4, 3}, {8, 8, 8}} {
		b.Run(fmt.Sprintf("M=%d,N=%d,K=%d", size.answers, size.suites, size.tests), func(b *testing.B) {
			x := openExecutor(b, sandbox.Config{CacheBytes: -1})
			var codes []string
			var suites [][]string
			for i := range size.answers {
				codes = append(codes, fmt.Sprintf("def f(x):\n    return sorted(x)[::-1] if len(x) != %d else x\n", i))
				var row []string
				for j := range size.suites {
					text := "```python\n"
					for k := range size.tests {
						text += fmt.Sprintf("assert f(list(range(%d))) == %d\n", i*j+k, k)
					}
					row = append(row, text+"```\n")
				}
				suites = append(suites, row)
			}
			in := sampled("def f(x):\n    return sorted(x, reverse=True)\n", []events.HistoricalTest{{Call: "f([])", Expected: "[]", Count: 1}}, codes, suites)
			before := sandboxtest.ChildrenCPU(b) + sandboxtest.CPU(b)
			b.ResetTimer()
			for b.Loop() {
				if _, err := x.Execute(b.Context(), in); err != nil {
					b.Fatal(err)
				}
			}
			used := sandboxtest.ChildrenCPU(b) + sandboxtest.CPU(b) - before
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "groups/s")
			b.ReportMetric(float64(used.Microseconds())/float64(b.N*size.answers), "cpu-us/answer")
		})
	}
}
