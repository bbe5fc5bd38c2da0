package eventlog

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"codea1/events"
	"codea1/events/files"
	"codea1/replay/internal/replaytest"
)

// victims are functions that this program runs instead of the tests, in the directory that
// an environment variable names. They do things that would end the test process.
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
	// Every check of a property opens logs. -rapid.checks=1000 runs more.
	flag.Parse()
	checks := "15"
	if thorough() {
		checks = "40"
	}
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "rapid.checks" {
			checks = f.Value.String()
		}
	})
	if err := flag.Set("rapid.checks", checks); err != nil {
		panic(err)
	}
	replaytest.Main(m)
}

// thorough reports whether tests repeat for confidence.
func thorough() bool { return os.Getenv("CODEA1_TEST_THOROUGH") == "1" }

// scratch opens a log five times as fast and syncs nothing: for tests that open many
// logs.
var scratch = Options{Scratch: true, chunkEvents: 16}

// scratchDir returns a directory in memory, if there is one with enough space: for tests
// that write much.
func scratchDir(t testing.TB) string {
	const memory = "/dev/shm"
	if free, err := files.Free(memory); err != nil || free < 2*reserveBytes {
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

// at gives each message the position "p" and its number, counted from first.
func at(first int, messages ...events.Message) []Incoming {
	entries := make([]Incoming, len(messages))
	for i, m := range messages {
		entries[i] = Incoming{Message: m, Position: events.Position(fmt.Sprintf("p%d", first+i))}
	}
	return entries
}

// recorded is at for the records of another log, which the log does not quarantine.
func recorded(first int, messages ...events.Message) []Incoming {
	entries := at(first, messages...)
	for i := range entries {
		entries[i].from = &Record{Message: entries[i].Message}
	}
	return entries
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

func mustAppend(t testing.TB, l *Log, entries []Incoming) Appended {
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

// allMessages returns the selected messages of the log.
func allMessages(t testing.TB, l *Log, options ReadOptions) []events.Message {
	t.Helper()
	var messages []events.Message
	for r, err := range l.Read(t.Context(), options) {
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, r.Message)
	}
	return messages
}

// storyLog returns a log with the messages, and its run directory.
func storyLog(t testing.TB, messages []events.Message) (run string, l *Log) {
	t.Helper()
	run = t.TempDir()
	l = openLog(t, Dir(run), scratch)
	mustAppend(t, l, at(0, messages...))
	return run, l
}
