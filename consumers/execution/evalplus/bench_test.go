package evalplus

import (
	"fmt"
	"testing"

	"codea1/consumers/execution/grading"
	"codea1/consumers/execution/internal/sandboxtest"
)

// BenchmarkGrade grades 8 answers to each of a few tasks of HumanEval+: the ground
// truth with another comment each time, so that the cache has none of them. The expected
// values are made in each round, too.
//
// The limit is the time of the calls themselves in one process. HumanEval/130 is apart,
// because its ten values of 12 MB cost more than the answers to twenty other tasks: the
// test computes each of them again, and the ground truth's beside it.
func BenchmarkGrade(b *testing.B) {
	all, err := ReadFile(shared(b, "HumanEvalPlus-v0.1.10.jsonl.gz"))
	if err != nil {
		b.Fatal(err)
	}
	x, workers := generous(b)
	for name, chosen := range map[string][]*Task{"usual": {all[2], all[10], all[58], all[90], all[122]}, "large": {all[130]}} {
		b.Run(name, func(b *testing.B) {
			answers, round := 0, 0
			before := sandboxtest.ChildrenCPU(b) + sandboxtest.CPU(b)
			for b.Loop() {
				round++
				samples := map[string][]string{}
				for _, t := range chosen {
					for i := range 8 {
						samples[t.ID] = append(samples[t.ID], fmt.Sprintf("%s\n# %d %d\n", t.Solution(), round, i))
					}
				}
				err := Grade(b.Context(), x, workers, chosen, samples, func(t *Task, grades []*grading.Grade) error {
					for _, g := range grades {
						answers++
						if !g.Solved() {
							b.Errorf("%s: %s", t.ID, g.FirstReason())
						}
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			used := sandboxtest.ChildrenCPU(b) + sandboxtest.CPU(b) - before
			b.ReportMetric(float64(used.Milliseconds())/float64(answers), "cpu-ms/answer")
		})
	}
}
