package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"codea1/consumers/execution/internal/sandboxtest"
	"codea1/consumers/execution/literal"
)

// TestRedTeam runs every attack of testdata/redteam. Each defines solve
// without knowing the right answers. None may earn a pass, harm the fork server,
// leave a process or a file, or change anything for the next candidate. None ends
// as a failure of the sandbox. The name of an attack that needs the state of an earlier
// program begins with state_; it runs twice.
//
// Not at LevelOpen, and confined only with Landlock and control groups: some attacks
// would harm the machine. Package sandboxfusion runs the attacks on a server.
func TestRedTeam(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/redteam/*.py")
	if err != nil || len(files) < 120 {
		t.Fatalf("%d attacks, %v", len(files), err)
	}
	callTimeout := sandboxtest.IfThorough(400*time.Millisecond, 200*time.Millisecond)
	forkServers := sandboxtest.IfThorough(6, 3)
	for i, level := range []Level{LevelIsolated, LevelConfined} {
		// The default run has every fifth attack at one level, and some of the others at
		// the next.
		first, every := sandboxtest.IfThorough(0, i), sandboxtest.IfThorough(1, 5+5*i)
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			// Most attacks wait until their time is up: several go on at once, each in a
			// fork server of its own.
			paths := make(chan string)
			var attacking sync.WaitGroup
			for range forkServers {
				p := openOwn(t, level, Config{Workers: 1, CallTimeout: callTimeout, JobTimeout: 2*callTimeout + 100*time.Millisecond, MemoryBytes: 128 << 20, CacheBytes: -1})
				if f := servers(p); level == LevelConfined && (f.version < landlockSignals || f.bounds.groups == nil) {
					t.Skip("not safe on this machine:", p.Describe())
				}
				attacking.Go(func() {
					for path := range paths {
						t.Run(strings.TrimSuffix(filepath.Base(path), ".py"), func(t *testing.T) { attack(t, p, path) })
					}
				})
			}
			for i := first; i < len(files); i += every {
				paths <- files[i]
			}
			close(paths)
			attacking.Wait()
		})
	}
}

func attack(t *testing.T, p *Pool, path string) {
	code, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid := forkServerPID(p)
	program, calls := Program{Code: string(code), EntryPoint: "solve"}, []string{"solve(1)", "solve(2)"}
	report, err := p.Run(t.Context(), program, calls)
	if err == nil && strings.HasPrefix(filepath.Base(path), "state_") {
		report, err = p.Run(t.Context(), program, calls)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []literal.Value{literal.Str("secret-1"), literal.Str("secret-2")} {
		if got := report.Outcomes[i]; got.Value != nil && literal.Equal(got.Value, want) {
			t.Errorf("call %d passes: %+v", i, got)
		}
	}
	// The limits of this pool are tight; the next program may wait.
	const after = `
import builtins, json, os, sys, threading
def look():
    names = sorted(os.listdir("."))
    open("new", "w").write("x")
    return names, oct(os.stat("new").st_mode), [json.dumps([False, 1]), isinstance(1, str)], os.getpid(), threading.active_count()
`
	call := "look()"
	if p.Describe().Level != LevelIsolated {
		call = "look()[:3] + (1, 1)" // the numbers of processes are the machine's
	}
	if got := literal.Text(patient(t, p, after, call)); got != "([], '0o100644', ['[false, 1]', False], 1, 1)" {
		t.Errorf("the next candidate sees %s", got)
	}
	if forkServerPID(p) != pid {
		t.Error("the fork server did not outlive it")
	}
	if left := descendants(t, pid); len(left) > 1 {
		t.Errorf("processes %d are still there", left)
	}
}

// patient runs one harmless call, again where a busy machine made it late.
func patient(t *testing.T, p *Pool, code, call string) literal.Value {
	t.Helper()
	for range 20 {
		report, err := p.Run(t.Context(), Program{Code: code}, []string{call})
		if err != nil {
			t.Fatal(err)
		}
		if report.Loads && report.Outcomes[0].Value != nil {
			return report.Outcomes[0].Value
		}
	}
	t.Fatal("no value within twenty tries")
	return nil
}
