package execution

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/consumers/execution/literal"
)

// TestParseSuites is the table of the texts that count as tests. Each line of want is
// `call == stated`, or `!` and a part of the reason.
func TestParseSuites(t *testing.T) {
	t.Parallel()
	x := openExecutor(t, quick)
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"literal", "assert f(1) == 2", []string{"f(1) == 2"}},
		{"normalised", "assert  f( [1,2] ,k = 'a' )==( {'x':None}, )", []string{"f([1, 2], k='a') == ({'x': None},)"}},
		{"with a message", "assert f(1) == 2, 'wrong'", []string{"f(1) == 2"}},
		{"over several lines", "assert f([\n    1,\n    2,\n]) == [\n    3\n]\n", []string{"f([1, 2]) == [3]"}},
		{"two on a line", "assert f(1) == 1; assert f(2) == 2", []string{"f(1) == 1", "f(2) == 2"}},
		{"empty", "", nil},
		{"comments only", "# nothing\n\n", nil},
		{"negative and float", "assert f(-1) == -2.5", []string{"f(-1) == -2.5"}},
		{"set and bytes", "assert f({1}) == set()\nassert f(b'a') == {b'b'}", []string{"f({1}) == set()", "f(b'a') == {b'b'}"}},
		{"pure arguments", "assert f([0] * 3, list(range(2)), 'a'.join(['b', 'c']), [x for x in 'ab'], key=lambda v: -v) == 1",
			[]string{"f([0, 0, 0], [0, 1], 'bac', ['a', 'b'], key=lambda v: -v) == 1"}},
		{"computed answers", "assert f(1) == sorted([2, 1])\nassert f(2) == 2 ** 10\nassert f(3) == -inf\nassert f(4) == float('inf')\nassert f(5) == {x: x for x in range(2)}",
			[]string{"f(1) == [1, 2]", "f(2) == 1024", "f(3) == float('-inf')", "f(4) == float('inf')", "f(5) == {0: 0, 1: 1}"}},
		{"answers that cannot be computed", "assert f(1) == 1 // 0\nassert f(2) == (x for x in 'a')\nassert f(3) == 3\nassert f(4) == 9 ** 9 ** 9",
			[]string{"!ZeroDivisionError", "!a value of type generator", "f(3) == 3", "!cannot be computed"}},
		{"answers that are no literals", "assert f(1) == 1j\nassert f(2) == ...\nassert f(3) == '" + strings.Repeat("x", 5000) + "'",
			[]string{"f(1) == complex(0.0, 1.0)", "!a value of type ellipsis", "!over the size limit"}},
		{"answer from the function itself", "assert f(1) == f(1)", []string{"!uses the name f"}},
		{"argument from the function itself", "assert f(f(1)) == 1", []string{"!uses the name f"}},
		{"arguments that look around", "assert f(globals()) == 1\nassert f(open('x')) == 1\nassert f(().__class__) == 1\nassert f((y := 1)) == 1\nassert f(x) == 1\nassert f(*args) == 1\nassert f(math.pi) == 1",
			[]string{"!uses the name globals", "!uses the name open", "!private attribute __class__", "!uses NamedExpr", "!uses the name x", "!uses the name args", "!uses the name math"}},
		{"another function", "assert g(1) == 2\nassert len(f(1)) == 2\nassert obj.f(1) == 2\nassert f.f(1) == 2",
			[]string{"!does not call the entry point", "!does not call the entry point", "!does not call the entry point", "!does not call the entry point"}},
		{"other comparisons", "assert f(1) != 2\nassert f(1) is None\nassert f(1) < 2\nassert 1 < f(1) == 2\nassert f(1) in [1]\nassert f(1)\nassert not f(1)\nassert 2 == f(1)\nassert abs(f(1) - 2) < 1e-6",
			[]string{"!not one ==", "!not one ==", "!not one ==", "!not one ==", "!not one ==", "!not one ==", "!not one ==", "!no call on the left", "!not one =="}},
		{"other statements", "import f\nx = 1\nprint(f(1))\n'doc'\ndef test():\n    assert f(1) == 2\nfor x in [1]:\n    assert f(x) == 2\n",
			[]string{"!not an assert", "!not an assert", "!not an assert", "!not an assert", "!not an assert"}},
		{"names", "x = [1]\nassert f(x) == 1\ny = {'k': x}\nassert f(y, n=len(x)) == x\nx = 2\nassert f(x) == y", []string{"f([1]) == 1", "f({'k': [1]}, n=1) == [1]", "f(2) == {'k': [1]}"}},
		{"names that stand for too much", "a = [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "a = [a, a]\n" + strings.Repeat("a = [a, a]\n", 50) + "assert f(a) == 1\nassert f(2) == 2", []string{"!uses the name a", "f(2) == 2"}},
		{"names of other blocks", "x = 1\nassert f(x) == [\n\ny = 2\nassert f(y) == x\n", []string{"!syntax error", "f(2) == 1"}},
		{"cut off", "assert f(1) == 1\nassert f(2) == [2\n", []string{"f(1) == 1", "!syntax error"}},
		{"cut off in a string", "assert f('a') == 1\nassert f('b", []string{"f('a') == 1", "!syntax error"}},
		{"prose", "Here are tests:\n\nassert f(1) == 1\nassert f(2) = 2\nassert f(\n    3\n) == 3\n", []string{"!syntax error", "f(1) == 1", "!syntax error", "f(3) == 3"}},
		{"null byte", "assert f(1) == 1\x00\nassert f(2) == 2", []string{"!syntax error", "f(2) == 2"}},
		{"indented", "    assert f(1) == 1", []string{"!syntax error"}},
		{"nested too deep", "assert f(" + strings.Repeat("[", 90) + strings.Repeat("]", 90) + ") == 1\nassert f(0) == " + strings.Repeat("[", 70) + strings.Repeat("]", 70),
			[]string{"f(" + strings.Repeat("[", 90) + strings.Repeat("]", 90) + ") == 1", "!nested too deep"}},
		{"nested too deep for Python", "assert f(1) == 1\nassert f(2) == " + strings.Repeat("(", 5000) + strings.Repeat(")", 5000), []string{"f(1) == 1", "!syntax error"}},
		{"long call", "assert f('" + strings.Repeat("x", 5000) + "') == 1", []string{"!the call is over the size limit"}},
		{"too many", strings.Repeat("assert f(1) == 1\n", 200), many("f(1) == 1", 64)},
	} {
		t.Run(c.name, func(t *testing.T) {
			suites, err := x.parseSuites(t.Context(), "f", []string{c.text}, false, x.config.JobTimeout)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i, st := range suites[0] {
				line := "!" + st.Reason
				if st.Reason == "" {
					line = st.Call + " == " + literal.Text(st.stated)
				} else if i < len(c.want) && strings.HasPrefix(c.want[i], "!") && strings.Contains(st.Reason, c.want[i][1:]) {
					line = c.want[i]
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func many(s string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = s
	}
	return list
}

func TestParseEntryPoints(t *testing.T) {
	x := openExecutor(t, quick)
	for _, c := range []struct {
		entry, text string
		isTest      bool
	}{
		{"Solution().f", "assert Solution().f(1) == 1", true},
		{"Solution().f", "assert Solution ( ) . f (n=1) == 1", true},
		{"Solution().f", "assert Solution().g(1) == 1", false},
		{"Solution().f", "assert f(1) == 1", false},
		{"", "assert anything(1) == 1", true},
		{"", "assert Solution().f(1) == 1", false},
	} {
		suites, err := x.parseSuites(t.Context(), c.entry, []string{c.text}, false, x.config.JobTimeout)
		if err != nil {
			t.Fatal(err)
		}
		if got := suites[0][0].Reason == ""; got != c.isTest {
			t.Errorf("entry %q: %s: test: %t, reason %q", c.entry, c.text, got, suites[0][0].Reason)
		}
	}
}

func TestSuiteText(t *testing.T) {
	for _, c := range []struct{ response, want string }{
		{"assert f(1) == 1", "assert f(1) == 1"},
		{"Tests:\n```python\nassert f(1) == 1\n```\nand\n```\nassert f(2) == 2\n```\nDone.", "assert f(1) == 1\n\nassert f(2) == 2\n\n"},
		{"```python\nassert f(1) == 1\nassert f(", "assert f(1) == 1\nassert f(\n"},
	} {
		if got := SuiteText(c.response); got != c.want {
			t.Errorf("SuiteText(%q) = %q, want %q", c.response, got, c.want)
		}
	}
}
