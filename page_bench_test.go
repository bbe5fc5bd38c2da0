//go:build unix

package main

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// BenchmarkPageOfAFinishedRun opens the page of a run of 5,008 groups from its log, in
// a new Chromium for each operation. It needs Playwright in the Python of TAP_PYTHON.
// It reports:
//
//	address-ms  from the start of the command to the address of the page
//	paint-ms    from the request for the page at this address to its first paint with content
//	drawn-ms    from this request to charts with all steps, while the command reads the log
//	again-...   the same for a page when the command has read the log
func BenchmarkPageOfAFinishedRun(b *testing.B) {
	python := cmp.Or(os.Getenv("TAP_PYTHON"), "python3")
	if err := exec.Command(python, "-c", "import playwright").Run(); err != nil {
		b.Skip("no Playwright in " + python + ", or in TAP_PYTHON")
	}
	sizes := benchSizes
	sizes.Steps, sizes.ProblemsPerStep, sizes.Answers, sizes.Suites = 313, 16, 4, 4
	p := newPipeline(b, sizes)
	p.train(b)
	if err := p.log.Close(); err != nil {
		b.Fatal(err)
	}
	b.Logf("%d groups, %d MB of events", p.rewarded.Load(), p.bytes.Load()/1e6)
	program, err := exec.LookPath("codea1")
	if err != nil {
		b.Fatal(err)
	}
	sums := map[string]float64{}
	b.ResetTimer()
	for range b.N {
		paint := exec.Command(python, "testdata/paint.py", program, p.dir, strconv.Itoa(sizes.Steps))
		paint.Stderr = os.Stderr
		out, err := paint.Output()
		figures := map[string]float64{}
		if err == nil {
			err = json.Unmarshal(out, &figures)
		}
		if err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		for name, ms := range figures {
			sums[name] += ms
		}
	}
	for name, sum := range sums {
		b.ReportMetric(sum/float64(b.N), name)
	}
}
