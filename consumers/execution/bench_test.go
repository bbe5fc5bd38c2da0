package execution

import (
	"fmt"
	"testing"

	"codea1/events"
)

// BenchmarkRun is the smallest job: define a function, call it eight times.
func BenchmarkRun(b *testing.B) {
	p := openPool(b, Config{})
	program := Program{Code: "from typing import *\ndef f(x):\n    return [x] * 3\n", EntryPoint: "f"}
	var calls []string
	for i := range 8 {
		calls = append(calls, fmt.Sprintf("f(%d)", i))
	}
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := p.Run(b.Context(), program, calls); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkExecute is a group of a training step: ground truth, answers and
// suites.
func BenchmarkExecute(b *testing.B) {
	for _, size := range []struct{ answers, suites, tests int }{{4, 4, 3}, {8, 8, 8}} {
		b.Run(fmt.Sprintf("M=%d,N=%d,K=%d", size.answers, size.suites, size.tests), func(b *testing.B) {
			p := openPool(b, Config{})
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
			b.ResetTimer()
			for b.Loop() {
				if _, err := p.Execute(b.Context(), in); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "groups/s")
		})
	}
}
