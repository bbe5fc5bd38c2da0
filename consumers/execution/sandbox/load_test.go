package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

// TestLoadIsNoVerdict: a call that needs less than its time of a core gets it, however
// many others want the cores; and one that runs for ever is ended all the same.
func TestLoadIsNoVerdict(t *testing.T) {
	if _, _, ok := coreTimeOf([]int{os.Getpid()}); !ok {
		t.Skip("this system does not say how long a process waited for a core")
	}
	p := openOwn(t, LevelOpen, Config{Workers: 1, CallTimeout: 400 * time.Millisecond, JobTimeout: 4 * time.Second, CacheBytes: -1})
	crowd(t, 4*runtime.NumCPU(), p.Describe().Python)
	const code = "import time\ndef f(seconds):\n    end = time.process_time() + seconds\n    while time.process_time() < end: pass\n    return 'done'\n" +
		"def wait(seconds): time.sleep(seconds)"
	calls := []string{"f(0.1)", "f(0.05)", "f(0.1)", "f(0.05)", "f(0.1)"}
	report, err := p.Run(t.Context(), Program{Code: code}, calls)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range report.Outcomes {
		if got := show(o); got != "'done'" {
			t.Errorf("%s: %s", calls[i], got)
		}
	}
	for _, endless := range []string{"f(1000000)", "wait(1000000)"} {
		report, err := p.Run(t.Context(), Program{Code: code}, []string{endless})
		if err != nil {
			t.Fatal(err)
		}
		if o := report.Outcomes[0]; o.Kind != TimedOut {
			t.Errorf("%s: %+v", endless, o)
		}
	}
}

// crowd keeps the cores busy with many processes until the test ends.
func crowd(t *testing.T, processes int, python string) {
	t.Helper()
	for range processes {
		c := exec.CommandContext(t.Context(), python, "-S", "-c", "while True: pass")
		if err := c.Start(); err != nil {
			t.Fatal(fmt.Errorf("crowd: %w", err))
		}
		t.Cleanup(func() {
			_ = c.Process.Kill()
			_ = c.Wait() // it was killed
		})
	}
}
