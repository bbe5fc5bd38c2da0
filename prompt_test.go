package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/gpuworker"
	"codea1/producers/problems"
)

// The embedded models are trained on the corpus of package problems, and package
// gpuworker writes their prompts. The two packages do not import each other, but
// their prompts must be the same text.
func TestCorpusAndRolloutsAskAlike(t *testing.T) {
	for i, p := range []events.Problem{
		{ID: "1", Question: "Return xs.", EntryPoint: "solve", Solution: "def solve(xs):\n    return xs"},
		{ID: "2", Question: "Zwei Zeilen:\n  ünïcode ", EntryPoint: "solve", Solution: "def solve(xs):\n    return [\n        1,\n    ]"},
	} {
		want := []gpuworker.Message{{Role: "user", Content: problems.CodePrompt(p.Question)}}
		if diff := cmp.Diff(want, gpuworker.CodePrompt(gpuworker.StylePlain, &p)); diff != "" {
			t.Errorf("problem %d, Code LLM (-corpus +rollout):\n%s", i, diff)
		}
		want[0].Content = problems.TestPrompt(p.Question, p.Solution)
		// A program cut out of a fenced block ends with a line feed, one of the
		// corpus does not.
		for _, code := range []string{p.Solution, p.Solution + "\n"} {
			if diff := cmp.Diff(want, gpuworker.TestPrompt(gpuworker.StylePlain, &p, code, 3)); diff != "" {
				t.Errorf("problem %d, Test LLM (-corpus +rollout):\n%s", i, diff)
			}
		}
	}
}
