package sandbox

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestBreakOut(t *testing.T) {
	t.Parallel()
	// Landlock and control groups stop the same attempts as namespaces.
	confined := openAt(t, LevelConfined, quick)
	attempts, err := confined.BreakOut(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(attempts) < 10 {
		t.Errorf("%d attempts only", len(attempts))
	}
	for _, a := range attempts {
		if !a.Failed && servers(confined).version >= landlockSignals && (servers(confined).bounds.groups != nil || a.Means != "starts processes without a limit") {
			t.Errorf("confined, a candidate %s: %s", a.Means, a.Detail)
		}
	}
	// TestCheckCommand tries them isolated. They are real: without isolation, many
	// succeed.
	weak, err := openAt(t, LevelOpen, quick).BreakOut(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	succeeded := 0
	for _, a := range weak {
		if !a.Failed {
			succeeded++
		}
	}
	if succeeded < 5 {
		t.Errorf("%d attempts succeed without isolation: %+v", succeeded, weak)
	}
}

func TestCheckCommand(t *testing.T) {
	t.Parallel()
	openAt(t, LevelIsolated, quick)
	var out bytes.Buffer
	c := CheckCommand{JSON: true, Flags: Flags{SandboxLevel: "isolated", CallTimeout: 2 * time.Second, JobTimeout: 10 * time.Second, MemoryMiB: 256}}
	if err := c.Run(t.Context(), &out, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	attempts := strings.Count(readHarness("breakout.py"), "\n    \"\"\"")
	var report checkReport
	if err := json.Unmarshal(out.Bytes(), &report); err != nil || report.Level != "isolated" || report.Python == "" || len(report.Attempts) != attempts || !report.Attempts[0].Stopped {
		t.Errorf("%v, %s", err, &out)
	}
	out.Reset()
	if err := report.print(&out); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "level   isolated") || strings.Contains(text, "SUCCEEDED") || strings.Count(text, "stopped") != attempts {
		t.Error(text)
	}
}
