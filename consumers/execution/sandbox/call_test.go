package sandbox

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/consumers/execution/literal"
)

// TestAppendCall says which calls go by value.
func TestAppendCall(t *testing.T) {
	for _, call := range []string{
		"f()", "f(1)", "f(-1)", "f(-0)", "f(0.5, -1e+16, 1e-05)", "f(True, False, None)", "f('', 'a', \"it's\", 'a b')",
		"f([])", "f(())", "f((1,))", "f({})", "f([[1, (2, [3])], {'a': {1: (1, 2)}}])", "f(999999999999999999)", "f(k=1)", "f(1, k=[1], j='k')",
		"f(1, 1, 'a', 'a', True, True)", "f([1, 2], [1, 2])", "f(1, 1.0, True)",
		`f('\n', '\u00e9', 'é', "'\x00")`, "f(1000, 1000)", "f([0.5, 0.5])", "f('a b', k='a b')", "f((1, 2), [1000, 1000])",
	} {
		if _, ok := appendCall(nil, "f", call); !ok {
			t.Errorf("%s goes as text", call)
		}
	}
	for _, call := range []string{
		"f", "f(", "f(1", "f(1) ", "f(1))", "g(1)", "ff(1)", "f (1)", "f( 1)", "f(1 )", "f(1,)", "f(1,2)", "f(, 1)", "f(1, )", "(f)(1)", "f(1)(2)", "f(1).x", "f(1)[0]",
		"f(x)", "f(g(1))", "f(f(1))", "f(*[1])", "f(**{})", "f((x := 1))", "f(lambda: 1)", "f([v for v in []])", "f(v for v in [])", "f(1 + 1)", "f(not 1)", "f(1 if 1 else 2)",
		"f((1))", "f([1,])", "f((1, ))", "f({1})", "f({1, 2})", "f({1: 2, **{}})", "f({[1]: 2})", "f({(1, [2]): 3})", "f({1:2})", "f(set())", "f(b'a')", "f(f'a')", "f(u'a')", "f(r'a')",
		"f('a' 'b')", `f('\a')`, `f('\')`, "f('a\nb')", "f('\x00')", "f('''a''')", "f(1j)", "f(0x1)", "f(01)", "f(00)", "f(1_0)", "f(1.)", "f(.5)", "f(1e999)", "f(--1)", "f(+1)", "f(~1)", "f(- 1)",
		"f(9999999999999999999)", "f(inf)", "f(...)", "f(1if 1else 2)", "f(1a)", "f(1 is 1)",
		"f(k=1, k=2)", "f(k=1, 2)", "f(None=1)", "f(class=1)", "f(__debug__=1)", "f(k = 1)", "f(k==1)", "f(\u017f=1)", "f(k=)", "f(# )",
		"f((1, 2), (1, 2))", "f({1000: (1, 1000)})", "f(((1,), (1,)))", "f((1000, 1000))", "f(1000, (1000, [2]))",
		"f(" + strings.Repeat("[", 30) + strings.Repeat("]", 30) + ")",
	} {
		if data, ok := appendCall([]byte("before"), "f", call); ok || string(data) != "before" {
			t.Errorf("%s goes by value, or leaves %q", call, data)
		}
	}
	for entry, plain := range map[string]bool{
		"f": true, "Solution().f": true, "a.b_1.C().d()": true, "": false, "f(1)": false, "f + g": false, "f[0]": false, "f\n": false, "f #": false, "1": false, "é": false, "f ": false, ".f": false,
	} {
		if plainEntry.MatchString(entry) != plain {
			t.Errorf("entry point %q is plain: %v", entry, !plain)
		}
	}
}

// callPrograms behave in ways that could tell a call by value from one that is
// compiled.
var callPrograms = []struct{ name, entry, code string }{
	{"echo", "f", "def f(*a, **k): return a, k"},
	{"types", "f", "def walk(v):\n    return [type(v).__name__] + [walk(x) for x in (list(v.items()) if isinstance(v, dict) else v if isinstance(v, (list, tuple)) else [])]\ndef f(*a, **k): return walk([a, k])"},
	{"identity", "f", `
def leaves(v):
    yield v
    if isinstance(v, dict):
        for pair in v.items(): yield from leaves(pair[0]); yield from leaves(pair[1])
    elif isinstance(v, (list, tuple)):
        for x in v: yield from leaves(x)
def f(*a, **k):
    found = [v for x in (*a, *k.values(), *k) for v in leaves(x)]
    return [[i, j] for i, v in enumerate(found) for j, w in enumerate(found) if i < j and v is w], [v is w for v in found for w in ('a', 'k', 'word', '', 0, 7, None, ())]
`},
	{"mutates", "f", "seen = []\ndef f(*a, **k):\n    for v in (*a, *k.values()):\n        if isinstance(v, list): v.append(9)\n        if isinstance(v, dict): v['x'] = 9\n    k['more'] = 1\n    seen.append(a)\n    return a, k, len(seen), seen[:3]"},
	{"remembers its default", "f", "def f(*a, k=[], j=0):\n    k.append(len(a))\n    return k"},
	{"method", "Solution().f", "class Solution:\n    made = 0\n    def __init__(self): Solution.made += 1; self.n = 0\n    def f(self, *a, **k): self.n += 1; return self.made, self.n, a, k"},
	{"redefined", "f", "def f(*a, **k):\n    global f\n    old = f\n    f = lambda *a, **k: ('new', a, k)\n    return 'old', a, k"},
	{"removed", "f", "def f(*a, **k):\n    global f\n    del f\n    return 1"},
	{"shadows", "f", "len = str = list = dict = eval = compile = exec = None\ndef f(*a, **k): return a, k"},
	{"strict", "f", "def f(x, /, y, *, k=1): return x, y, k"},
	{"raises", "f", "def f(*a, **k): raise KeyError(a, k)"},
	{"exits", "f", "def f(*a, **k): raise SystemExit(a)"},
	{"no function", "f", "class f:\n    def __init__(self, *a, **k): self.a = a\n    def __eq__(self, other): return True"},
	{"built in", "f", "f = max"},
	{"callable", "f", "class C:\n    def __call__(self, *a, **k): return a, k\nf = C()"},
	{"generator", "f", "def f(*a, **k): yield a"},
	{"depth", "f", "def depth(n=1):\n    try: return depth(n + 1)\n    except RecursionError: return n\ndef f(*a, **k): return depth()"},
	{"deep", "f", "def f(*a, n=0, **k): return f(*a, n=n + 1) if n < 990 else n"},
	{"frames", "f", `
import sys
def f(*a, **k):
    frame, found = sys._getframe(), []
    while frame:
        found.append([frame.f_code.co_filename[-9:], frame.f_code.co_name, frame.f_lineno if len(found) < 2 else 0])
        frame = frame.f_back
    caller = sys._getframe(1)
    return found, caller.f_globals is globals(), caller.f_locals is globals(), caller.f_code.co_names, sorted(globals())
`},
	{"random", "f", "import random\ndef f(*a, **k): return random.random()"},
}

var callArguments = []string{
	"", "1", "-1", "0, 1, 256, 257, -5, -6, 7", "1000, -1000, 1000.0", "2147483647, 2147483648, -2147483648, -2147483649, 32767, 32768, 1073741824, 999999999999999999, -999999999999999999",
	"-0", "-0.0, 0.0", "0.1, 1e+16, 1e-05, -2.5", "True, False, None", "'', 'a', 'word', 'two words', \"it's\"", "'a', 'a', 'word', 'word'", "'x' , 'x'",
	"[]", "(), []", "[1, 2, 3]", "[3, 1, 2], k=2", "[[1, 2], [3, 4]]", "(1, 2), (3,)", "[(1, 2), (3, 4)]", "(1, [2]), (1, [2])", "((1, 2), 3)",
	"{}", "{'a': 1}", "{'a': 1, 'b': [1, 2], 'a': 3}", "{1: 'one', True: 'two', 1.0: 'three'}", "{(1, 2): 3, 'k': {'k': 'k'}}", "{None: None}",
	"k=1", "1, 2, k=3", "1, y=2", "1, 2, 3, 4", "x=1, y=2", "[5], j='word'", "self=1", "'1' + '2'", "1 + 1, 2 ** 70", "[v for v in range(3)]", "*[1, 2], **{'k': 3}",
	"1000, 1000", "[1000, 1000, 0.5, 0.5]", "'two words', 'two words'", "(1, 2), (1, 2), [(1, 2)]", "{1, 2, 3}", "frozenset([1])", "b'a', b'a'", "1j", "10 ** 400", "f'{1}'", "lambda: 1",
	"'\\u00e9', '\\n'", "'\\u00e9', 'é', '\\U0001f600', '😀', '\\ud800', 'x\\x00y', '\"'", "'é é', ['é é', 'é é'], {'é é': 'é é'}",
	"[1000, 1000, 1000, 0.5], 1000, {'a': 1000, 'b': 0.5}", "[-0.5, -0.5], -0.5, [0.0, -0.0, 0.0]", "'two words', {'two words': ['two words']}, k='two words'",
	"3000000000, [3000000000, 3000000000], (1, 2), [0.5, 0.5]", "[[1.5, 2.5], [1.5, 2.5], [1.5, 2.5]], {1.5: 2.5}",
	"key=len", "1, 2", "[9, 8], k=[]",
}

// TestCallsByValue compares calls as they go with the same calls as text, which a
// blank at the end makes of them.
func TestCallsByValue(t *testing.T) {
	p := openPool(t, Config{CacheBytes: -1})
	for _, program := range callPrograms {
		t.Run(program.name, func(t *testing.T) {
			var asIs, asText []string
			values := 0
			for _, arguments := range callArguments {
				call := fmt.Sprintf("%s(%s)", program.entry, arguments)
				if _, ok := appendCall(nil, program.entry, call); ok {
					values++
				}
				asIs, asText = append(asIs, call), append(asText, call+" ")
				also := fmt.Sprintf("%s(%s)", AlsoArguments(program.entry), arguments)
				asIs, asText = append(asIs, also), append(asText, also+" ")
			}
			if values < len(callArguments)/2 {
				t.Errorf("only %d of %d calls go by value", values, len(callArguments))
			}
			want, got := outcomes(t, p, program.code, program.entry, asText), outcomes(t, p, program.code, program.entry, asIs)
			for i, call := range asIs {
				if diff := cmp.Diff(want[i], got[i]); diff != "" {
					t.Errorf("%s (-text +as is):\n%s", call, diff)
				}
			}
		})
	}
}

var address = regexp.MustCompile(`at 0x[0-9a-f]+`)

func outcomes(t *testing.T, p *Pool, code, entry string, calls []string) []string {
	t.Helper()
	report, err := p.Run(t.Context(), Program{Code: code, EntryPoint: entry}, calls)
	if err != nil {
		t.Fatal(err)
	}
	if !report.Loads {
		t.Fatal(report.LoadError)
	}
	var found []string
	for _, o := range report.Outcomes {
		text := o.Kind.String() + " " + o.Detail
		if o.Value != nil {
			text += literal.Text(o.Value)
		}
		found = append(found, address.ReplaceAllString(text, "at"))
	}
	return found
}
