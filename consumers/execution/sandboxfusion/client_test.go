package sandboxfusion

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codea1/consumers/execution"
	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
)

// hasty does not make a test wait.
var hasty = pace{pause: time.Millisecond, longest: 5 * time.Millisecond, patience: 500 * time.Millisecond, queue: 20 * time.Second}

// unhurried has limits that a busy server keeps: there, nothing counts the time that
// a program waits for a core.
var unhurried = sandbox.Config{Workers: 1, CallTimeout: 5 * time.Second, JobTimeout: 40 * time.Second, MemoryBytes: quick.MemoryBytes, CacheBytes: -1}

// TestRemote uses one server of this package, with a sandbox of its own, or that
// of CODEA1_TEST_SERVER: a real SandboxFusion.
func TestRemote(t *testing.T) {
	t.Parallel()
	address := os.Getenv("CODEA1_TEST_SERVER")
	if address == "" {
		behind := openPool(t, sandbox.Config{Workers: 4, MemoryBytes: 512 << 20, FileBytes: 16 << 20, CacheBytes: -1})
		server := httptest.NewServer(Handler(behind, ServeLimits{Waiting: 64}))
		t.Cleanup(server.Close)
		address = server.URL
	}
	for name, test := range map[string]func(*testing.T, string){
		"run": testRemoteRun, "answers that go on": testRemoteAnswersThatGoOn, "agrees": testRemoteAgrees, "red team": testRemoteRedTeam,
		"forgery": testRemoteForgery, "holds only calls": testRemoteHoldsOnlyCalls, "is no machine": testRemoteIsNoMachine,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, address)
		})
	}
}

// openServed opens a pool that runs its programs on a server.
func openServed(t *testing.T, address string, config sandbox.Config) *sandbox.Pool {
	t.Helper()
	return openServedAt(t, address, config, hasty)
}

func openServedAt(t *testing.T, address string, config sandbox.Config, pace pace) *sandbox.Pool {
	t.Helper()
	p, err := openServer(t.Context(), address, "", config, pace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func openOn(t *testing.T, handler http.Handler, config sandbox.Config, pace pace) *sandbox.Pool {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return openServedAt(t, server.URL, config, pace)
}

// testRemoteRun runs calls on programs that misbehave, on a server.
func testRemoteRun(t *testing.T, address string) {
	config := unhurried
	config.Workers, config.MemoryBytes = 4, 256<<20
	p := openServed(t, address, config)
	const imports = "import os, sys, time, signal, threading\n"
	for _, c := range []struct {
		name, code string
		calls      []string
		want       string // outcomes, or "unloadable: " and a part of the reason
	}{
		{name: "values", code: "def f(x): return [x, {x: (x,)}, {x}, None, 'é\\ud800😀', b'\\xff', x / 2, float('inf'), 1 << 70]", calls: []string{"f(1)"},
			want: `[1, {1: (1,)}, {1}, None, 'é\ud800😀', b'\xff', 0.5, float('inf'), 1180591620717411303424]`},
		{name: "raises and hangs", code: "def f(x):\n while x == 1: pass\n if x == 2: os._exit(3)\n if x == 3: raise ValueError('no')\n return x", want: "0 timed out crashed raised 4"},
		{name: "prints", code: "print('at the start')\ndef f(x):\n print('x' * 100_000)\n os.write(1, b'y')\n os.write(2, b'z')\n return x", want: "0 1 2 3 4"},
		{name: "memory bomb", code: "def f(x): return len(bytearray(1 << 40)) if x == 1 else x", want: "0 raised 2 3 4"},
		{name: "large values", code: "def f(x): return 'x' * (300_000 + x) if x < 3 else x", calls: []string{"f(0) == 'x' * 300_000", "len(f(1))", "f(3)"}, want: "True 300001 3"},
		{name: "too large a value", code: "def f(x): return 'x' * 10_000_000 if x == 1 else x", want: "0 returned 2 3 4"},
		{name: "set order", code: "def f(x): return ''.join({'one', 'two', 'three', 'four'}) == ''.join({'one', 'two', 'three', 'four'})", calls: []string{"f(1)"}, want: "True"},
		{name: "daemon", code: "def f(x):\n if os.fork() == 0:\n  os.setsid()\n  time.sleep(60)\n return x", calls: []string{"f(1)"}, want: "1"},
		{name: "files", code: "def f(x):\n open('left', 'w').close()\n return [n for n in os.listdir('.') if not n.endswith('.py')]", calls: []string{"f(1)"}, want: "['left']"},
		{name: "does not load again", code: "if os.path.exists('began'): os._exit(1)\nopen('began', 'w').close()\ndef f(x): return x if x != 1 else os._exit(1)", want: "0 crashed raised raised raised"},
		{name: "method", code: "class Solution:\n def f(self, x): return x\nf = Solution().f", calls: []string{"f(x=3)"}, want: "3"},
		{name: "does not load", code: "1/0", want: "unloadable: ZeroDivisionError"},
		{name: "hangs when loaded", code: "while True: pass", want: "unloadable: still loading after"},
		{name: "dies when loaded", code: "os._exit(3)", want: "unloadable: the process exited with status 3 while loading"},
		{name: "kills its watcher", code: "def f(x):\n time.sleep(2)\n os.kill(os.getppid(), signal.SIGKILL)\n time.sleep(60)", calls: []string{"f(0)", "f(1)"}, want: "crashed crashed"},
		{name: "kills its watcher when loaded", code: "os.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(60)", want: "unloadable: took its answers away"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			calls := c.calls
			if calls == nil {
				calls = []string{"f(0)", "f(1)", "f(2)", "f(3)", "f(4)"}
			}
			report, err := p.Run(t.Context(), sandbox.Program{Code: imports + c.code, EntryPoint: "f"}, calls)
			if err != nil {
				t.Fatal(err)
			}
			if reason, unloadable := strings.CutPrefix(c.want, "unloadable: "); unloadable {
				if report.Loads || !strings.Contains(report.LoadError, reason) {
					t.Errorf("loads: %t, error %q; want %q", report.Loads, report.LoadError, reason)
				}
				return
			}
			var got []string
			for _, o := range report.Outcomes {
				got = append(got, show(o))
			}
			if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("-want +got\n%s\n%.500v", diff, report)
			}
		})
	}
}

// testRemoteAnswersThatGoOn: values that are too long for one answer come in
// several.
func testRemoteAnswersThatGoOn(t *testing.T, address string) {
	p := openServed(t, address, unhurried)
	var calls []string
	for i := range 40 {
		calls = append(calls, fmt.Sprintf("f(%d)", i))
	}
	report, err := p.Run(t.Context(), sandbox.Program{Code: "def f(x): return chr(97 + x % 20) * 400_000"}, calls)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range report.Outcomes {
		if want := literal.Str(strings.Repeat(string(rune('a'+i%20)), 400_000)); o.Value == nil || !literal.Equal(o.Value, want) {
			t.Errorf("call %d: %s %s", i, o.Kind, o.Detail)
		}
	}
}

// testRemoteAgrees does a whole group here and on a server.
func testRemoteAgrees(t *testing.T, address string) {
	here, there := openPool(t, unhurried), openServed(t, address, unhurried)
	const solution = "def f(x): return {v: str(v) for v in x}"
	codes := []string{solution, "import time\ndef f(x):\n if len(x) > 1: time.sleep(60)\n return {v: v for v in x}", "def f(x) return x"}
	in := &events.TestsSampled{
		Posed: events.ProblemPosed{
			Plan:       events.Plan{Purpose: events.PurposeTrain, Step: 1, Groups: 1, Answers: len(codes), Suites: 1, Tests: 3, Temperature: 1},
			Problem:    events.Problem{ID: "p", Question: "Map numbers to texts.", EntryPoint: "f", Solution: solution},
			Historical: []events.HistoricalTest{{Call: "f([5])", Expected: "{5: '5'}", Count: 2}},
		},
		CodeVersion: 3, Version: 4, Codes: codes, Prompts: make([]events.Int32s, len(codes)),
	}
	for _, text := range []string{
		"assert f([1]) == {1: '1'}\nassert f([1, 2]) == sorted([1])\nx = 1", "assert f([]) == {}\nassert f([0]) == {0: '0'}\nassert f([1, 2]) == {}", "assert f([1]) == 1",
	} {
		in.Suites = append(in.Suites, []events.Completion{{Text: text, Finish: events.FinishStop}})
	}
	in.Posed.Problem.Golden = []string{"assert f([7]) == {7: '7'}", "import unittest\nclass T(unittest.TestCase):\n def test(self): self.assertEqual(f([1]), {1: '1'})", "assert f(sorted) is None"}
	want, err := execution.New(here).Execute(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	got, err := execution.New(there).Execute(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-here +there\n%s", diff)
	}
	if want.Answers[0].Golden[0].Verdict != events.VerdictPass || want.Answers[1].Golden[1].Verdict != events.VerdictFail {
		t.Errorf("got %+v", want.Answers)
	}
}

// testRemoteRedTeam runs attacks that a server sees in a request of their own.
func testRemoteRedTeam(t *testing.T, address string) {
	p := openServed(t, address, sandbox.Config{Workers: 4, CallTimeout: time.Second, JobTimeout: 2 * time.Second, MemoryBytes: 256 << 20, CacheBytes: -1})
	for _, name := range []string{"value_always_equal", "forged_frames", "marker_on_every_descriptor", "marker_on_stdout", "frames", "gc_objects", "exit_0", "builtins_patched", "memory_scan", "atexit"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, err := os.ReadFile("../sandbox/testdata/redteam/" + name + ".py")
			if err != nil {
				t.Fatal(err)
			}
			verdicts, err := execution.New(p).Check(t.Context(), string(code), "solve", []string{"assert solve(1) == 'secret-1'", "assert solve(2) == 'secret-2'"})
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range verdicts {
				if v.Verdict == events.VerdictPass || v.InProcess {
					t.Errorf("test %d: %+v", i, v)
				}
			}
		})
	}
}

// testRemoteForgery: a program that writes the lines of an answer itself has
// only chosen the values that its calls return.
func testRemoteForgery(t *testing.T, address string) {
	config := unhurried
	config.Workers = 4
	p := openServed(t, address, config)
	forge := func(lines ...string) string {
		text, err := json.Marshal(lines)
		if err != nil {
			t.Fatal(err)
		}
		return "import ctypes, json, os, re, signal, time\n" +
			"text = open(next(n for n in os.listdir('.') if n.endswith('.py'))).read()\n" + // the program that this one is part of
			"import base64\nsetup = json.loads(base64.b64decode(re.search(r'main\\(\"([^\"]{99,})\"\\)', text)[1]))\n" +
			"out = b''.join((setup['nonce'] + ' ' + line + '\\n').encode() for line in json.loads(" + fmt.Sprintf("%q", text) + "))\n" +
			"def f(x):\n" +
			" path = setup['file_name']\n" +
			" with open(path, 'wb') as file: file.write(out)\n" + // what standard output does not hold goes there
			" time.sleep(2)\n os.kill(os.getppid(), signal.SIGKILL)\n time.sleep(60)\n" // it has said by then that this loads
	}
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"a value":       {[]string{`["V", "41"]`, `["E", ""]`}, "41"},
		"too many":      {[]string{`["V", "41"]`, `["V", "42"]`, `["E", ""]`}, "41"},
		"no literal":    {[]string{`["V", "f()"]`, `["E", ""]`}, "crashed"},
		"unknown tag":   {[]string{`["Q", "1"]`, `["E", ""]`}, "crashed"},
		"rubbish":       {[]string{`{`}, "crashed"},
		"more for ever": {[]string{`["E", "more"]`}, "not run"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, err := p.Run(t.Context(), sandbox.Program{Code: forge(c.lines...), EntryPoint: "f"}, []string{"f(1)"})
			if err != nil {
				t.Fatal(err)
			}
			if !report.Loads || show(report.Outcomes[0]) != c.want {
				t.Errorf("got %+v, want %s", report, c.want)
			}
		})
	}
}

// testRemoteHoldsOnlyCalls looks for an expectation in the request that a
// program is part of.
func testRemoteHoldsOnlyCalls(t *testing.T, address string) {
	p := openServed(t, address, unhurried)
	code := "import base64, os, re\ndef f():\n text = open(next(n for n in os.listdir('.') if n.endswith('.py'))).read()\n" +
		" text += base64.b64decode(re.search(r'main\\(\"([^\"]{99,})\"\\)', text)[1]).decode()\n" +
		" return '-'.join(['secret', 'expectation']) in text, 'f()' in text\n"
	verdicts, err := execution.New(p).Check(t.Context(), code, "f", []string{"assert f() == 'secret-expectation'", "assert f() == (False, True)"})
	if err != nil {
		t.Fatal(err)
	}
	if verdicts[0].Verdict != events.VerdictFail || verdicts[1].Verdict != events.VerdictPass || verdicts[1].InProcess {
		t.Errorf("got %+v", verdicts)
	}
}

func TestRemoteAddress(t *testing.T) {
	for server, want := range map[string]string{
		"http://a:8080":           "http://a:8080/run_code",
		"https://a/sandbox/":      "https://a/sandbox/run_code",
		"http://a:8080/run_code":  "http://a:8080/run_code",
		"http://u:p@a/x/run_code": "http://u:p@a/x/run_code",
		"a:8080":                  "",
		"ftp://a":                 "",
		"http://":                 "",
		"":                        "",
	} {
		got, err := runCodeAddress(server)
		if want == "" {
			if err == nil {
				t.Errorf("%q: got %v", server, got)
			}
			continue
		}
		if err != nil || got.String() != want {
			t.Errorf("%q: got %v, %v", server, got, err)
		}
	}
	if _, err := Open(t.Context(), &sandbox.Flags{Sandbox: "localhost"}, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "want a URL") {
		t.Errorf("got %v", err)
	}
}

// testRemoteIsNoMachine: commands about this machine are refused on a remote pool.
func testRemoteIsNoMachine(t *testing.T, address string) {
	flags := sandbox.Flags{Sandbox: "http://127.0.0.1:1"}
	if err := (&sandbox.CheckCommand{Flags: flags}).Run(t.Context(), io.Discard, slog.New(slog.DiscardHandler)); !errors.Is(err, sandbox.ErrThisMachineOnly) {
		t.Errorf("check: %v", err)
	}
	if err := (&ServeCommand{Flags: flags}).Run(t.Context(), io.Discard, slog.New(slog.DiscardHandler)); !errors.Is(err, sandbox.ErrThisMachineOnly) {
		t.Errorf("serve: %v", err)
	}
	p := openServed(t, address, unhurried)
	if _, err := RunCode(t.Context(), p, &RunCodeRequest{Language: "python"}); !errors.Is(err, sandbox.ErrThisMachineOnly) {
		t.Errorf("run code: %v", err)
	}
	if about := p.Describe(); !strings.Contains(about.Isolation+about.Bounds, "server") || about.Level != levelElsewhere {
		t.Errorf("%+v", about)
	}
}

func TestRemoteWithoutServer(t *testing.T) {
	var failed *sandbox.Error
	if _, err := openServer(t.Context(), "http://127.0.0.1:1", "", sandbox.Config{Retries: -1}, hasty); !errors.As(err, &failed) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v", err)
	}
}

// FuzzServerAnswer reads the lines that a server, or a program there, sends.
func FuzzServerAnswer(f *testing.F) {
	const nonce = "codea1-N"
	for _, seed := range []string{
		"", "x\ncodea1-N [\"B\", \"\"]\ncodea1-N [\"L\", \"\"]\ncodea1-N [\"V\", \"1\"]\ncodea1-N [\"M\", \"gone\"]\ncodea1-N [\"E\", \"more\"]\n",
		"codea1-N [\"B\", \"\"]\ncodea1-N [\"U\", \"no\"]\ncodea1-N [\"E\", \"\"]", "codea1-N [\"E\", \"\"]", "codea1-N [\"B\"", "codea1-N [\"B\", \"\", \"\"]", "codea1-N []\n",
	} {
		f.Add(seed)
	}
	j := sandbox.Job{Items: []string{"1", "2"}, ValueBytes: 64}
	f.Fuzz(func(t *testing.T, text string) {
		var a serverAnswer
		err := a.read(j, nonce, text)
		if len(a.Replies) > len(j.Items) || a.Loads && a.LoadError != "" || len(a.Replies) > 0 && !strings.Contains(text, nonce) {
			t.Fatalf("%q was read as %+v, %v", text, a, err)
		}
		if err != nil {
			a.Blame(&j)
		}
		if a.Loads && err != nil && len(a.Replies) != len(j.Items) {
			t.Fatalf("%q is not complete: %+v", text, a)
		}
	})
}
