package replay

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"codea1/events"
	"go.uber.org/goleak"
)

// victims are what this program does instead of testing when a variable of its
// environment names a directory: what a test must not do to its own process.
var victims = map[string]func(dir string) error{}

func TestMain(m *testing.M) {
	for variable, run := range victims {
		if dir := os.Getenv(variable); dir != "" {
			if err := run(dir); err != nil {
				fmt.Println("failed:", err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	// Opening a log is what a check of a property costs. More are asked for with
	// -rapid.checks=1000.
	flag.Parse()
	checks := "40"
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "rapid.checks" {
			checks = f.Value.String()
		}
	})
	if err := flag.Set("rapid.checks", checks); err != nil {
		panic(err)
	}
	// glog, which a cache of Badger's imports, flushes for ever.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/golang/glog.(*fileSink).flushDaemon"))
}

const testRun = "r1"

// scratch opens a log in a fifth of the time and syncs nothing: for tests that
// open many and lose none.
var scratch = Options{scratch: true, chunkEvents: 16}

// scratchDir returns a directory in memory, where there is one with room: for
// tests that write much and need no disk.
func scratchDir(t testing.TB) string {
	const memory = "/dev/shm"
	if free, err := freeBytes(memory); err != nil || free < 2*DefaultReserveBytes {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "codea1-replay-*")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

var testTime = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

// encode returns an event's message; the event then knows its hash.
func encode(t testing.TB, e *events.Event) events.Message {
	t.Helper()
	m, err := events.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func testPlan(slot int) events.Plan {
	return events.Plan{Purpose: events.PurposeTrain, Step: 1 + slot/1000, Slot: slot % 1000, Groups: 1000, Answers: 1, Suites: 1, Tests: 1, Temperature: 1}
}

// posed opens group number slot; question tells apart two of the same group.
func posed(slot int, question string) *events.Event {
	plan := testPlan(slot)
	return events.New(testRun, plan.GroupID(), "curriculum", testTime.Add(time.Duration(slot)), &events.ProblemPosed{
		Plan:    plan,
		Problem: events.Problem{ID: fmt.Sprintf("p%d", slot%7), Question: question, EntryPoint: "f", Solution: "def f(x): return x"},
	})
}

func sampled(cause *events.Event, text string) *events.Event {
	p := cause.Payload.(*events.ProblemPosed)
	return events.Caused(cause, "code-0", testTime, &events.CodeSampled{
		Posed: *p, Prompt: events.Int32s{1, 2},
		Answers: []events.Completion{{Text: text, Tokens: events.Int32s{3}, LogProbs: events.Float32s{-0.5}, Finish: events.FinishStop}},
	})
}

// rewarded ends a group with changes of the Mistake Book.
func rewarded(cause *events.Event, deltas ...events.BookDelta) *events.Event {
	plan, _ := events.PlanOf(cause.Payload)
	return events.Caused(cause, "rewards-0", testTime, &events.GroupRewarded{
		Plan: plan, ProblemID: fmt.Sprintf("p%d", plan.Slot%7), Recipe: "a1", Alpha: 0.5,
		Code: []events.AnswerReward{{Reward: 1, Loads: true}}, Test: [][]events.SuiteReward{{{Reward: 0.5}}}, Deltas: deltas,
	})
}

func delta(call string, change int) events.BookDelta {
	return events.BookDelta{Call: call, Expected: "0", Change: change}
}

// group returns a whole group: posed, sampled and rewarded. Which tests it
// fails and cures depends on its slot.
func group(t testing.TB, slot int) []events.Message {
	p := posed(slot, "What is f?")
	messages := []events.Message{encode(t, p)}
	s := sampled(p, strings.Repeat("return x\n", slot%300))
	messages = append(messages, encode(t, s))
	r := rewarded(s, delta(fmt.Sprintf("f(%d)", slot%3), -1), delta(fmt.Sprintf("f(%d)", slot%5), 1), delta(fmt.Sprintf("f(%d)", slot%4), 2))
	return append(messages, encode(t, r))
}

// at gives each message the position "p" and its number from first.
func at(first int, messages ...events.Message) []Entry {
	entries := make([]Entry, len(messages))
	for i, m := range messages {
		entries[i] = Entry{Message: m, Position: events.Position(fmt.Sprintf("p%d", first+i))}
	}
	return entries
}

// noise is text that does not compress to less than half.
func noise(seed, length int) string {
	r := rand.New(rand.NewPCG(1, uint64(seed)))
	b := make([]byte, length)
	for i := range b {
		b[i] = byte(' ' + r.IntN(94))
	}
	return string(b)
}

func openLog(t testing.TB, dir string, options Options) *Log {
	t.Helper()
	l, err := Open(dir, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func mustAppend(t testing.TB, l *Log, entries []Entry) Appended {
	t.Helper()
	appended, err := l.Append(t.Context(), entries)
	if err != nil {
		t.Fatal(err)
	}
	return appended
}

func mustVerify(t testing.TB, l *Log) Report {
	t.Helper()
	report, err := l.Verify(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// scanAll returns the messages of the log.
func scanAll(t testing.TB, l *Log, options ScanOptions) []events.Message {
	t.Helper()
	var messages []events.Message
	for r, err := range l.Scan(t.Context(), options) {
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, r.Message)
	}
	return messages
}
