package execution

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"codea1/consumers/execution/sandbox"
	"codea1/events"
)

// A run that stops early has the same first test that a program does not pass as a whole run,
// and the same verdicts up to it, with programs that do anything on some inputs: other values, values that no
// literal expresses, exceptions, and the end of the process.
func TestStopEarlyHasTheVerdictOfAWholeRun(t *testing.T) {
	t.Parallel()
	x := openExecutor(t, generous)
	random := rand.New(rand.NewPCG(1, 2))
	does := []string{"return x", "return x", "return x", "return x", "return -x", "return float(x)", "return 'x' * 2_000_000", "return object()", "raise SystemExit", "return 1 // 0", "import os; os._exit(0)"}
	tests := []string{"assert f(%[1]d) == %[1]d", "assert f(%[1]d) == %[1]d", "assert f(%[1]d) == %[1]d", "assert f(%[1]d) in (%[1]d,)", "y = f(%[1]d)\nassert y == %[1]d and f(0) == 0", "assert f(%[1]d) is not None\nassert type(f) is not int", "assert callable(f)"}
	failing := 0
	programs := 24
	if os.Getenv("CODEA1_TEST_THOROUGH") != "" {
		programs = 500
	}
	for range programs {
		var code strings.Builder
		code.WriteString("def f(x):\n")
		for input := range 8 {
			if input > 0 { // most programs are right on most inputs
				fmt.Fprintf(&code, "    if x == %d: %s\n", input, does[random.IntN(len(does))])
			}
		}
		code.WriteString("    return x\n")
		var all []string
		for range 10 {
			test := tests[random.IntN(len(tests))]
			if strings.Contains(test, "%") {
				test = fmt.Sprintf(test, random.IntN(8))
			}
			all = append(all, test)
		}
		votes := random.IntN(6)
		grade := func(early bool) []events.GoldenVerdict {
			plan, err := x.PlanGolden(t.Context(), sandbox.Program{Code: "def f(x): return x", EntryPoint: "f"}, all, 0)
			if err != nil {
				t.Fatal(err)
			}
			if early {
				plan.StopEarly(votes)
			}
			got, err := x.Grade(t.Context(), sandbox.Program{Code: code.String(), EntryPoint: "f"}, plan)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		first := func(all []events.GoldenVerdict) int {
			return slices.IndexFunc(all, func(v events.GoldenVerdict) bool { return v.Verdict != events.VerdictPass })
		}
		whole, early := grade(false), grade(true)
		at := first(whole)
		if at >= 0 {
			failing++
		}
		if first(early) != at || at >= 0 && early[at].Verdict != whole[at].Verdict {
			t.Errorf("%s%q, %d votes:\nwhole %+v\nearly %+v", code.String(), all, votes, whole, early)
		}
	}
	if failing < programs/3 || failing == programs {
		t.Errorf("%d of %d programs fail", failing, programs)
	}
}
