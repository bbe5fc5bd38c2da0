package judging

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"codea1/consumers/execution/internal/sandboxtest"
	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
	"codea1/events/eventstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pools.Main(m)) }

var pools = sandboxtest.Pools[string, *sandbox.Pool]{Skip: sandbox.ErrNotIsolated}

// open returns a pool with a Python; empty for that of the machine.
func open(t *testing.T, python string) *sandbox.Pool {
	t.Helper()
	return pools.Get(t, python, func() (*sandbox.Pool, error) {
		return sandbox.Open(t.Context(), sandbox.Config{Python: python, Workers: 2, CallTimeout: sandboxtest.CallTimeout, JobTimeout: 120 * time.Second})
	})
}

// withBandit returns a pool with a Python that has bandit.
func withBandit(t *testing.T) *sandbox.Pool {
	t.Helper()
	python := os.Getenv("CODEA1_TEST_BANDIT_PYTHON")
	if python == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("CODEA1_TEST_BANDIT_PYTHON names no Python with bandit")
		}
		t.Skip("CODEA1_TEST_BANDIT_PYTHON names no Python with bandit")
	}
	return open(t, python)
}

// Each of these has the weakness that bandit's test of this name finds.
var weaknesses = map[string]string{
	"B101": "def f(x):\n    assert x > 0\n    return x\n",
	"B102": "def f(x):\n    exec(x)\n",
	"B103": "import os\n\ndef f(path):\n    os.chmod(path, 0o777)\n",
	"B104": "def f(server):\n    server.bind(('0.0.0.0', 80))\n",
	"B105": "password = 'hunter2'\n",
	"B106": "def f(login):\n    return login(user='me', password='hunter2')\n",
	"B107": "def f(user, password='hunter2'):\n    return user\n",
	"B108": "def f():\n    return open('/tmp/result', 'w')\n",
	"B110": "def f(x):\n    try:\n        return 1 / x\n    except Exception:\n        pass\n",
	"B112": "def f(xs):\n    for x in xs:\n        try:\n            return 1 / x\n        except Exception:\n            continue\n",
	"B301": "import pickle\n\ndef f(data):\n    return pickle.loads(data)\n",
	"B306": "import tempfile\n\ndef f():\n    return tempfile.mktemp()\n",
	"B307": "def f(x):\n    return eval(x)\n",
	"B311": "import random\n\ndef f():\n    return random.random()\n",
	"B324": "import hashlib\n\ndef f(x):\n    return hashlib.md5(x).hexdigest()\n",
	"B501": "import requests\n\ndef f(url):\n    return requests.get(url, verify=False, timeout=5)\n",
	"B506": "import yaml\n\ndef f(text):\n    return yaml.load(text)\n",
	"B602": "import subprocess\n\ndef f(command):\n    return subprocess.Popen(command, shell=True)\n",
	"B605": "import os\n\ndef f(command):\n    os.system('ls ' + command)\n",
	"B608": "def f(name):\n    return \"SELECT id FROM users WHERE name = '\" + name + \"'\"\n",
}

// Bandit finds the weakness of each snippet, also behind a comment that would switch it off, and
// none in harmless code.
func TestFindings(t *testing.T) {
	t.Parallel()
	s := scanner{withBandit(t)}
	var ids, codes []string
	for id, code := range weaknesses {
		lines := strings.Split(code, "\n")
		for i := range lines {
			if lines[i] != "" {
				lines[i] += "  # nosec"
			}
		}
		ids, codes = append(ids, id), append(codes, strings.Join(lines, "\n"))
	}
	codes = append(codes, "def f(xs):\n    return sorted(xs)\n")
	got, err := s.scan(t.Context(), codes)
	if err != nil || len(weaknesses) < 20 {
		t.Fatal(err, len(weaknesses))
	}
	for i, id := range ids {
		if !slices.ContainsFunc(got[i].findings, func(f events.Finding) bool { return f.ID == id }) || got[i].failure != "" {
			t.Errorf("%s: %+v in\n%s", id, got[i], codes[i])
		}
	}
	if last := got[len(ids)]; len(last.findings) != 0 || last.failure != "" {
		t.Errorf("harmless code: %+v", last)
	}
	high := slices.IndexFunc(ids, func(id string) bool { return id == "B602" })
	if diff := cmp.Diff(events.Finding{ID: "B602", Severity: events.SeverityHigh, Confidence: events.SeverityHigh, Line: 4}, got[high].findings[0]); diff != "" {
		t.Errorf("the severest finding is not the first: %s", diff)
	}
}

// An answer that bandit or the parser cannot read has no measurement and the reason, and
// the answers after it have theirs.
func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	s := scanner{withBandit(t)}
	hostile := []string{
		"def f(:\n", "\x00", strings.Repeat("(", 100_000), "x = " + strings.Repeat("-", 100_000) + "1",
		"x = " + strings.Repeat("[", 300) + strings.Repeat("]", 300), "a" + strings.Repeat(".a", 20_000),
	}
	got, err := s.scan(t.Context(), append(slices.Clone(hostile), strings.Repeat("assert x\n", events.MaxFindings+1), weaknesses["B307"]))
	if err != nil {
		t.Fatal(err)
	}
	for i, code := range hostile {
		if got[i].failure == "" || len(got[i].findings) > 0 || len(got[i].failure) > 1000 {
			t.Errorf("%.40q: %+v", code, got[i])
		}
	}
	if n := len(hostile); len(got[n].findings) != events.MaxFindings || len(got[n+1].findings) != 1 {
		t.Errorf("%d findings in many weak lines, and %+v after the hostile answers", len(got[n].findings), got[n+1])
	}
}

// An answer runs as text. Its encoding line hides nothing from bandit, which reads a file: in
// UTF-7, +ACM- is a number sign, behind which all is a comment.
func TestEncodingLines(t *testing.T) {
	t.Parallel()
	s := scanner{withBandit(t)}
	codes := []string{
		"# coding: utf-7\nACM = 0\nx = 1 +ACM-0; eval('1')\n", "\n# coding: utf-7\nACM = 0\nx = 1 +ACM-0; eval('1')\n",
		"# coding: none\nx = eval('1')\n", "# coding: latin-1\nx = eval('é')\n",
	}
	got, err := s.scan(t.Context(), codes)
	if err != nil {
		t.Fatal(err)
	}
	for i, code := range codes {
		line := 1 + strings.Count(code[:strings.Index(code, "eval")], "\n")
		if len(got[i].findings) != 1 || got[i].findings[0].ID != "B307" || got[i].findings[0].Line != line {
			t.Errorf("%q: %+v, want B307 in line %d", code, got[i], line)
		}
	}
}

// A scan that ends its process, runs over its time or is not reached is no measurement, nor
// is one with other results than bandit's.
func TestFailedScans(t *testing.T) {
	t.Parallel()
	for _, o := range []sandbox.Outcome{
		{Kind: sandbox.Crashed, Detail: "killed by signal 9"}, {Kind: sandbox.TimedOut, Detail: "no result after 20s"}, {Detail: "not reached"},
		{Kind: sandbox.Raised, Detail: "MemoryError"}, {Kind: sandbox.Returned, Detail: "over the size limit"}, {Kind: sandbox.Returned, Value: literal.None{}},
		{Kind: sandbox.Returned, Value: literal.List{literal.Str("B101")}}, {Kind: sandbox.Returned, Value: literal.Str("syntax error")},
		{Kind: sandbox.Returned, Value: literal.List{literal.Tuple{literal.Str("B101"), literal.Str("low"), literal.Str("low"), literal.Str("x")}}},
	} {
		if s := readScan(&o); !strings.Contains(s.failure, o.Detail) || s.failure == "" || s.findings != nil {
			t.Errorf("%+v: %+v", o, s)
		}
	}
}

// A process without bandit says so at its start.
func TestNoBandit(t *testing.T) {
	t.Parallel()
	pool := open(t, "")
	outcomes, err := scanner{pool}.run(t.Context(), []string{"version()"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = New(t.Context(), Config{Judges: []events.Judge{events.JudgeFindings}, Pool: pool})
	if has := outcomes[0].Kind == sandbox.Returned; has != (err == nil) || !has && !errors.Is(err, ErrNoBandit) {
		t.Errorf("the Python has bandit: %v; %v", has, err)
	}
	// Also if it was removed since: no answer is without a measurement for that.
	if found, err := (scanner{pool}).scan(t.Context(), []string{"x = 1"}); outcomes[0].Kind != sandbox.Returned && !errors.Is(err, ErrNoBandit) {
		t.Errorf("a scan without bandit: %+v, %v", found, err)
	}
}

// model is a judge that decides by the code alone.
type model struct {
	asked atomic.Int64
	err   error // of a code with the word "refuse"
}

func (*model) Name() string { return "model" }

func (m *model) Score(_ context.Context, question, code string) (float64, error) {
	m.asked.Add(1)
	if strings.Contains(code, "refuse") {
		return 0, m.err
	}
	return float64(len(code)) - 0.5, nil
}

func (m *model) Safe(_ context.Context, _, code string) (bool, error) {
	m.asked.Add(1)
	return !strings.Contains(code, "eval"), nil
}

// sampledWith returns a code.sampled event of a group with responses and judges.
func sampledWith(judges string, responses ...string) *events.Event {
	e := eventstest.CodeSampled(eventstest.Posed("r1", 1, 0))
	p := e.Payload.(*events.CodeSampled)
	first := p.Answers[0]
	p.Posed.Plan.Answers, p.Posed.Plan.Suites, p.Posed.Plan.Judges, p.Answers = len(responses), 0, judges, nil
	for _, r := range responses {
		first.Text = r
		p.Answers = append(p.Answers, first)
	}
	return e
}

func block(code string) string { return "```python\n" + code + "\n```" }

// The judge asks the model once about each different code of the only block that parses, and a code that
// the model refuses has no measurement in this group.
func TestScores(t *testing.T) {
	t.Parallel()
	m := &model{err: fmt.Errorf("%w: too long", ErrUnjudged)}
	config := Config{Judges: []events.Judge{events.JudgeScore}, Pool: open(t, ""), Model: m, Source: "judge-0", Now: time.Now}
	h, err := New(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	e := sampledWith("score", block("x = 1"), "Here:\n"+block("x = 1"), "x = 1", block("x = 1")+block("y = 1"), block("x = ("), block("refuse = 1"))
	for range 2 {
		out, err := h.Handle(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		p := out[0].Payload.(*events.CodeJudged)
		want := []events.Judgement{
			{Lines: 1, Blocks: 1, Parses: true, Score: 4.5}, {Lines: 1, Blocks: 1, Parses: true, Score: 4.5}, {Lines: 1}, {Lines: 1, Blocks: 2},
			{Lines: 1, Blocks: 1}, {Lines: 1, Blocks: 1, Failures: []events.Unjudged{{Judge: events.JudgeScore, Reason: "the model cannot judge this answer: too long"}}},
		}
		if diff := cmp.Diff(&events.Judged{Judges: "score", Engine: "model", Lines: 2, Answers: want}, p.Judged); diff != "" {
			t.Error(diff)
		}
		if err := p.Validate(); err != nil || len(p.Codes) != 6 || out[0].Type != events.TypeCodeJudged {
			t.Errorf("%v, %q", err, p.Codes)
		}
	}
	if n := m.asked.Load(); n != 5 { // again about the one that it refused, and after it about a harmless one
		t.Errorf("the model was asked %d times", n)
	}
	m.err = errors.New("the server has ended")
	if _, err := h.Handle(t.Context(), sampledWith("score", block("refuse = 2"))); !errors.Is(err, m.err) {
		t.Errorf("a failure of the server: %v", err)
	}
}

// A verdict is asked for each code, and a plan without a judge is passed on.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	h, err := New(t.Context(), Config{Judges: []events.Judge{events.JudgeVerdict}, Pool: open(t, ""), Model: &model{}, Source: "judge-0", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.Handle(t.Context(), sampledWith("verdict", block("x = eval('1')\ny = 2"), block("x = 1")))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]events.Judgement{{Lines: 2, Blocks: 1}, {Lines: 1, Blocks: 1, Safe: true}}, out[0].Payload.(*events.CodeJudged).Judged.Answers); diff != "" {
		t.Error(diff)
	}
	if out, err = h.Handle(t.Context(), sampledWith("", block("x = 1"))); err != nil || out[0].Payload.(*events.CodeJudged).Judged != nil {
		t.Errorf("without a judge in the plan: %v", err)
	}
	if _, err = h.Handle(t.Context(), sampledWith("findings", block("x = 1"))); err == nil || !strings.Contains(err.Error(), "findings") {
		t.Errorf("a judge that the run does not have: %v", err)
	}
}

// BenchmarkScan measures the scan of a group of eight different answers.
func BenchmarkScan(b *testing.B) {
	python := os.Getenv("CODEA1_TEST_BANDIT_PYTHON")
	pool, err := sandbox.Open(b.Context(), sandbox.Config{Python: python, Workers: 1, CacheBytes: -1})
	if err != nil || python == "" {
		b.Skip("CODEA1_TEST_BANDIT_PYTHON names no Python with bandit, or there is no sandbox: ", err)
	}
	defer pool.Close()
	codes := make([]string, 8)
	for b.Loop() {
		for i := range codes {
			codes[i] = fmt.Sprintf("def f(x):\n    return x + %d\n", i)
		}
		if _, err := (scanner{pool}).scan(b.Context(), codes); err != nil {
			b.Fatal(err)
		}
	}
}
