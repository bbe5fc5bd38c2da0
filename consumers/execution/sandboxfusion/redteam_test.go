package sandboxfusion

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"codea1/consumers/execution/internal/sandboxtest"
	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
)

// TestServedRedTeam runs the attacks of package sandbox on `sandbox serve`, each as an
// answer of the client and as a whole program. None may earn a pass, leave a file,
// or end as a failure of the sandbox, which would mask it.
func TestServedRedTeam(t *testing.T) {
	sandboxtest.OnlyThorough(t, "TestRemote has attacks through a server")
	t.Parallel()
	files, err := filepath.Glob("../sandbox/testdata/redteam/*.py")
	if err != nil || len(files) < 120 {
		t.Fatalf("%d attacks, %v", len(files), err)
	}
	const servers = 4
	// Package sandbox has every attack at both levels.
	for level, every := range map[sandbox.Level]int{sandbox.LevelIsolated: 1, sandbox.LevelConfined: 4} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			paths := make(chan string)
			var attacking sync.WaitGroup
			for range servers {
				behind := pools.Own(t, func() (*sandbox.Pool, error) {
					return sandbox.OpenAt(t.Context(), sandbox.Config{Workers: 1, MemoryBytes: 128 << 20, FileBytes: 2 << 20}, level)
				})
				if about := behind.Describe(); level == sandbox.LevelConfined && (!strings.Contains(about.Isolation, "signals by Landlock") || !strings.Contains(about.Bounds, "cgroup")) {
					t.Skip("not safe on this machine:", about)
				}
				server := httptest.NewServer(Handler(behind, ServeLimits{Waiting: 4}))
				t.Cleanup(server.Close)
				p := openServed(t, server.URL, sandbox.Config{Workers: 1, CallTimeout: 400 * time.Millisecond, JobTimeout: 900 * time.Millisecond, MemoryBytes: 128 << 20, CacheBytes: -1, Retries: -1})
				attacking.Go(func() {
					for path := range paths {
						t.Run(strings.TrimSuffix(filepath.Base(path), ".py"), func(t *testing.T) { attack(t, p, behind, path) })
					}
				})
			}
			for i := len(level) % every; i < len(files); i += every {
				paths <- files[i]
			}
			close(paths)
			attacking.Wait()
		})
	}
}

func attack(t *testing.T, p, behind *sandbox.Pool, path string) {
	code, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	runs := 1
	if strings.HasPrefix(filepath.Base(path), "state_") {
		runs = 2
	}
	for range runs {
		report, err := p.Run(t.Context(), sandbox.Program{Code: string(code), EntryPoint: "solve"}, []string{"solve(1)", "solve(2)"})
		if err != nil {
			t.Error("an answer is masked:", err)
			continue
		}
		for i, want := range []literal.Value{literal.Str("secret-1"), literal.Str("secret-2")} {
			if got := report.Outcomes[i]; got.Value != nil && literal.Equal(got.Value, want) {
				t.Errorf("call %d passes: %+v", i, got)
			}
		}
	}
	for range runs {
		got, err := RunCode(t.Context(), behind, &RunCodeRequest{Language: "python", Code: string(code) + "\nprint('returned', solve(1))\n", RunTimeout: 0.9})
		if err != nil {
			t.Error("a program is masked:", err)
		} else if runs == 2 && strings.Contains(got.RunResult.Stdout, "returned secret-1") {
			t.Errorf("state is left: %+v", got.RunResult)
		}
	}
	after, err := RunCode(t.Context(), behind, &RunCodeRequest{Language: "python", Code: "import os\nprint(sorted(os.listdir('.')))", RunTimeout: 60})
	if err != nil || after.RunResult.Stdout != "['main.py']\n" {
		t.Errorf("the next program: %+v, %v", after, err)
	}
}
