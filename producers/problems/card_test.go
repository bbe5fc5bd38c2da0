package problems

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The figures of the card, for sets whose overlap is known.
func TestCard(t *testing.T) {
	row := func(id, question, solution string, tests ...string) map[string]any {
		return map[string]any{"id": id, "question": question, "starter_code": "def solve(x):", "solution": "def solve(x):\n    return " + solution, "tests": tests}
	}
	answer := func(step int, loads bool, passed int) map[string]any {
		return map[string]any{"purpose": "eval", "finish": "stop", "failure": "", "step": step, "loads": loads, "golden": 2, "golden_passed": passed}
	}
	given := answer(0, true, 0)
	given["finish"] = "given" // a program of the problem, which no model sampled
	job := map[string]any{
		"train": []any{
			row("t1", "Return x plus 1.", "x + 1", "assert solve(1) == 2"),
			row("t2", "Return the sign of x as a number.", "(x > 0) - (x < 0)", "assert solve(1) == 1"),
		},
		"heldout": []any{
			row("h1", "Return x plus 7.", "x + 7", "assert solve(1) == 8", "assert solve(0) == 7"),
			// The first ground truth passes both tests. Four of its seven sequences of
			// tokens are in training.
			row("h2", "Return the number after x, please now.", "1 + x", "assert solve(1) == 2", "assert solve(4) == 5"),
		},
		// Half of the answers load and half of these are correct. Then all load, and
		// three quarters are correct: with the old half, format alone gives 25 points.
		"answers": []any{
			answer(0, true, 2), answer(0, true, 1), answer(0, false, 0), answer(0, false, 0), given,
			answer(9, true, 2), answer(9, true, 2), answer(9, true, 2), answer(9, true, 0),
		},
	}
	var text []string
	runPython(t, `
import io, os, tempfile
from card import write_card
out = io.StringIO()
with tempfile.TemporaryDirectory() as directory:
    os.chdir(directory)
    for name in job:
        with open(name + ".jsonl", "w") as file:
            file.writelines(json.dumps(row) + "\n" for row in job[name])
    write_card(".", ["train"], "heldout", ["answers.jsonl"], out)
answer = out.getvalue().splitlines()
`, job, &text)
	want := []string{
		"2 training and 2 held-out problems",
		"question: 0 are in training, 1 but for numbers; of the sequences of 5 words, training has 50% (median); Jaccard similarity to the nearest 0.50 (median), 1.00 (largest)",
		"solution: 0 are in training, 1 but for numbers; of the sequences of 4 tokens, training has 79% (median); Jaccard similarity to the nearest 0.70 (median), 1.00 (largest)",
		"behaviour: 1 pass all golden tests with a ground truth of training; the nearest ground truth passes 50% of them (median); it passes 90% or more for 1",
		"answers.jsonl: answers that load 50.0% -> 100.0%, correct answers 25.0% -> 75.0%; of the gain of +50.0 points, format gives +25.0 and substance +25.0",
	}
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("-want +have:\n%s", diff)
	}
}
