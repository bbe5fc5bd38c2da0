package sandbox

import (
	"strings"
	"testing"

	"codea1/consumers/execution/internal/sandboxtest"
	"codea1/consumers/execution/literal"
)

// quick is a configuration for tests that have to wait for a time limit: long
// enough for every program that ends on its own, on a busy machine too.
var quick = Config{Workers: 1, CallTimeout: sandboxtest.CallTimeout, MemoryBytes: 192 << 20, CacheBytes: -1}

// show writes an outcome as its kind, with the value if there is one.
func show(o Outcome) string {
	if o.Value != nil {
		return literal.Text(o.Value)
	}
	return o.Kind.String()
}

// TestRun runs f(0) to f(4), or the given calls, on programs that misbehave.
func TestRun(t *testing.T) {
	t.Parallel()
	config := quick
	config.Workers = 2
	p := openPool(t, config)
	const imports = "import os, sys, time, signal, threading, atexit, builtins\n"
	for _, c := range []struct {
		name  string
		code  string
		calls []string
		want  string // outcomes, or "unloadable: " and a part of the reason
	}{
		{name: "values", code: "def f(x): return [x, {x: (x,)}, {x}, None, 'é', b'b', x / 2]", calls: []string{"f(1)"},
			want: "[1, {1: (1,)}, {1}, None, 'é', b'b', 0.5]"},
		{name: "hang in one of five", code: "def f(x):\n while x == 2: pass\n return x", want: "0 1 timed out 3 4"},
		{name: "sleep", code: "def f(x):\n if x == 1: time.sleep(60)\n return x", want: "0 timed out 2 3 4"},
		{name: "hang that ignores signals", code: "for s in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM): signal.signal(s, signal.SIG_IGN)\ndef f(x):\n while x == 4: pass\n return x", want: "0 1 2 3 timed out"},
		{name: "hang in another process group", code: "def f(x):\n if x == 1: os.setpgid(0, os.getppid())\n while x == 2: pass\n return x", want: "0 1 timed out 3 4"},
		{name: "sys.exit", code: "def f(x):\n if x == 1: sys.exit(0)\n return x", want: "0 raised 2 3 4"},
		{name: "os._exit", code: "def f(x):\n if x in (1, 3): os._exit(0)\n return x", want: "0 crashed 2 crashed 4"},
		{name: "abort", code: "def f(x):\n if x == 1: os.abort()\n return x", want: "0 crashed 2 3 4"},
		{name: "raise", code: "def f(x): return [1][x]", want: "1 raised raised raised raised"},
		{name: "exception without a message", code: "class E(BaseException):\n def __str__(self): raise self\ndef f(x): raise E", calls: []string{"f(1)", "1"}, want: "raised 1"},
		{name: "recursion", code: "def f(x): return f(x)", calls: []string{"f(1)", "2"}, want: "raised 2"},
		{name: "deep recursion that is allowed", code: "def f(x): return 0 if x == 0 else 1 + f(x - 1)", calls: []string{"f(950)"}, want: "950"},
		{name: "memory bomb", code: "def f(x):\n if x == 1: return len(bytearray(1 << 40))\n return x", want: "0 raised 2 3 4"},
		{name: "growing memory", code: "def f(x):\n a = [0]\n while x == 1: a += a\n return x", want: "0 raised 2 3 4"},
		{name: "output", code: "def f(x):\n print('x' * 10_000_000)\n print('y' * 10_000_000, file=sys.stderr)\n os.write(1, b'z' * 1_000_000)\n return x", want: "0 1 2 3 4"},
		{name: "markers", code: "def f(x):\n print('PASS', '__RESULT__ True', flush=True)\n return x", calls: []string{"f(7)"}, want: "7"},
		{name: "standard input", code: "def f(x): return sys.stdin.read()", calls: []string{"f(7)"}, want: "''"},
		{name: "huge value", code: "def f(x): return 'x' * 10_000_000 if x == 1 else x", want: "0 returned 2 3 4"},
		{name: "huge int", code: "def f(x): return 1 << 100_000 if x == 1 else x", want: "0 returned 2 3 4"},
		{name: "cycle", code: "def f(x):\n a = [x]\n a.append(a)\n return a", calls: []string{"f(1)"}, want: "returned"},
		{name: "shared until it explodes", code: "def f(x):\n a = []\n for _ in range(50): a = [a, a]\n return a", calls: []string{"f(1)"}, want: "returned"},
		{name: "always equal", code: "class A:\n def __eq__(self, other): return True\n def __repr__(self): return '1'\ndef f(x): return A()", calls: []string{"f(1)"}, want: "returned"},
		{name: "subclass that lies", code: "class I(int):\n def __eq__(self, other): return True\n def __repr__(self): return '99'\n __str__ = __index__ = __int__ = __repr__\ndef f(x): return I(x)", calls: []string{"f(1)"}, want: "1"},
		{name: "class that lies about its class", code: "class A:\n __class__ = int\ndef f(x): return A()", calls: []string{"f(1)"}, want: "returned"},
		{name: "standard subclasses", code: "from collections import *\nfrom enum import *\nclass E(IntEnum): A = 5\nP = namedtuple('P', 'x y')\ndef f(x): return [Counter('aab'), OrderedDict(a=1), defaultdict(int, {1: 2}), P(1, 2), E.A]", calls: []string{"f(1)"},
			want: "[{'a': 2, 'b': 1}, {'a': 1}, {1: 2}, (1, 2), 5]"},
		{name: "generator", code: "def f(x): yield x", calls: []string{"f(1)", "list(f(1))"}, want: "returned [1]"},
		{name: "mutated argument", code: "def f(x):\n x.append(1)\n return x", calls: []string{"f([0])", "f([0])"}, want: "[0, 1] [0, 1]"},
		{name: "patched builtins", code: "import json\nfor n in ('repr', 'print', 'sorted', 'hash'):\n setattr(builtins, n, lambda *a: 99)\njson.dumps = json.loads = lambda *a: 99\ndef f(x): return [x]", calls: []string{"f(1)"}, want: "[1]"},
		{name: "patched out of what the harness needs", code: "builtins.len = builtins.type = lambda *a: 99\ndef f(x): return [x]", want: "unloadable: the process exited"},
		{name: "patched in its own namespace", code: "len = repr = eval = compile = lambda *a: 99\ndef f(x): return [x]", calls: []string{"f(1)"}, want: "[1]"},
		{name: "closes the socket", code: "def f(x):\n if x == 1: os.close(3)\n return x", want: "0 crashed 2 3 4"},
		{name: "writes rubbish to the socket", code: "def f(x):\n if x == 1: os.write(3, b'?' * 100)\n return x", want: "0 crashed 2 3 4"},
		{name: "claims a huge frame", code: "def f(x):\n if x == 1: os.write(3, b'V' + bytes([255] * 4))\n return x", want: "0 crashed 2 3 4"},
		{name: "sends what is no literal", code: "def f(x):\n if x == 1: os.write(3, b'V' + bytes([3, 0, 0, 0]) + b'f()')\n return x", calls: []string{"f(1)"}, want: "crashed"},
		{name: "thread that stays", code: "def f(x):\n threading.Thread(target=time.sleep, args=(60,)).start()\n return x", calls: []string{"f(1)"}, want: "1"},
		{name: "atexit", code: "atexit.register(time.sleep, 60)\ndef f(x): return x", calls: []string{"f(1)"}, want: "1"},
		{name: "files between jobs", code: "def f(x):\n open('left', 'w').close()\n return os.listdir('.')", calls: []string{"f(1)"}, want: "['left']"},
		{name: "same random numbers", code: "import random\ndef f(x): return random.randrange(1000)", calls: []string{"f(1) == random.Random(0).randrange(1000)"}, want: "True"},
		{name: "same order of sets", code: "def f(x): return hash('a') == hash('a')", calls: []string{"''.join({'one', 'two', 'three'}) == ''.join({'one', 'two', 'three'})"}, want: "True"},
		{name: "method", code: "class Solution:\n def f(self, x): return x", calls: []string{"Solution().f(x=3)"}, want: "3"},
		{name: "not the main program", code: "def f(x): return x\nif __name__ == '__main__': 1/0", calls: []string{"f(1)"}, want: "1"},
		{name: "dataclass", code: "from dataclasses import *\n@dataclass\nclass D:\n a: int\ndef f(x): return asdict(D(x))", calls: []string{"f(1)"}, want: "{'a': 1}"},

		{name: "syntax error", code: "def f(x) return x", want: "unloadable: SyntaxError"},
		{name: "null byte", code: "def f(x): return '\x00'", want: "unloadable: "},
		{name: "raises when loaded", code: "1/0", want: "unloadable: ZeroDivisionError"},
		{name: "exits when loaded", code: "sys.exit()", want: "unloadable: SystemExit"},
		{name: "dies when loaded", code: "os._exit(3)", want: "unloadable: the process exited with status 3 while loading"},
		{name: "hangs when loaded", code: "while True: pass", want: "unloadable: still loading after"},
		{name: "no entry point", code: "def g(x): return x", want: "unloadable: NameError"},
		{name: "entry point is a value", code: "f = 3", want: "unloadable: TypeError: f is not callable"},
		{name: "empty", code: "", want: "unloadable: NameError"},
		{name: "too deep to compile", code: "x = " + strings.Repeat("(", 100_000), want: "unloadable: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			calls := c.calls
			if calls == nil {
				calls = []string{"f(0)", "f(1)", "f(2)", "f(3)", "f(4)"}
			}
			entry := "f"
			if c.name == "method" {
				entry = "Solution().f"
			}
			report, err := p.Run(t.Context(), Program{Code: imports + c.code, EntryPoint: entry}, calls)
			if err != nil {
				t.Fatal(err)
			}
			if reason, wanted := strings.CutPrefix(c.want, "unloadable: "); wanted {
				if report.Loads || !strings.Contains(report.LoadError, reason) {
					t.Fatalf("loads: %t, error %q; want %q", report.Loads, report.LoadError, reason)
				}
				for _, o := range report.Outcomes {
					if o.Kind != NotRun {
						t.Fatalf("a call on it: %v", o)
					}
				}
				return
			}
			if !report.Loads {
				t.Fatalf("does not load: %s", report.LoadError)
			}
			var got []string
			for _, o := range report.Outcomes {
				got = append(got, show(o))
			}
			if got := strings.Join(got, " "); got != c.want {
				t.Errorf("got  %s\nwant %s\n%+v", got, c.want, report.Outcomes)
			}
		})
	}
}
