package execution

import (
	"fmt"
	"slices"
	"strings"

	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
)

// RecomputedTest returns a golden test of a call with arguments in brackets. Its value is
// that of the program truth, which computes it when the test runs. A value that is too
// large for the text of a test has such a test.
func RecomputedTest(truth, entry, arguments string) string {
	return fmt.Sprintf("%s%s, truth)\nassert %s%s%s%s\n",
		recomputedBegin, literal.Text(literal.Str(truth)), entry, arguments, recomputedMiddle(entry), arguments)
}

const recomputedBegin = "truth = {}\nexec("

func recomputedMiddle(entry string) string {
	return " == truth[" + literal.Text(literal.Str(entry)) + "]"
}

// recomputes reports whether a script is a RecomputedTest that makes this call and no
// other. Its verdict then follows from the value of the call.
func recomputes(script, entry string, calls []string) bool {
	lines := strings.Split(script, "\n")
	if len(lines) != 4 || lines[3] != "" || !strings.HasPrefix(script, recomputedBegin) {
		return false
	}
	statement, ok := strings.CutPrefix(lines[2], "assert "+entry)
	arguments, again, found := strings.Cut(statement, recomputedMiddle(entry))
	return ok && found && arguments == again && len(calls) == 1 &&
		slices.Contains([]string{entry + arguments, sandbox.AlsoArguments(entry) + arguments}, calls[0])
}
