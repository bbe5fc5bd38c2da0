package execution

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// post sends a request as a client of SandboxFusion would, and returns the
// response as a map, with the fields that the protocol has.
func post(t *testing.T, url, request string) (int, map[string]any) {
	t.Helper()
	response, err := http.Post(url+"/run_code", "application/json", strings.NewReader(request))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(body, &fields); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return response.StatusCode, fields
}

func TestRunCode(t *testing.T) {
	p := openPool(t, Config{Workers: 1})
	server := httptest.NewServer(p.HTTP(ServeLimits{}))
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	for _, c := range []struct {
		name, request  string
		status, run    string
		code           any // a float64, or nil
		stdout, stderr string
		files          string
	}{
		{"prints", `{"code": "print('hello')", "language": "python"}`, "Success", "Finished", 0.0, "hello\n", "", ""},
		{"all fields", `{"code": "print(input())", "language": "python", "compile_timeout": 10, "run_timeout": 10.0, "memory_limit_MB": -1, "stdin": "a line\n", "files": {}, "fetch_files": []}`, "Success", "Finished", 0.0, "a line\n", "", ""},
		{"raises", `{"code": "def f():\n    1/0\nf()", "language": "python"}`, "Failed", "Finished", 1.0, "", "ZeroDivisionError: division by zero\n", ""},
		{"assertion", `{"code": "assert 1 == 2, 'no'", "language": "python"}`, "Failed", "Finished", 1.0, "", "AssertionError: no\n", ""},
		{"syntax error", `{"code": "x = = 1", "language": "python"}`, "Failed", "Finished", 1.0, "", "SyntaxError: invalid syntax\n", ""},
		{"exit status", `{"code": "import sys\nprint('out')\nsys.exit(3)", "language": "python"}`, "Failed", "Finished", 3.0, "out\n", "", ""},
		{"exit message", `{"code": "exit('why')", "language": "python"}`, "Failed", "Finished", 1.0, "", "why\n", ""},
		{"signal", `{"code": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "language": "python"}`, "Failed", "Finished", -9.0, "", "", ""},
		{"main", `{"code": "import __main__, sys\nif __name__ == '__main__': print(sys.argv)", "language": "python"}`, "Success", "Finished", 0.0, "['main.py']\n", "", ""},
		{"atexit", `{"code": "import atexit\natexit.register(print, 'bye')", "language": "python"}`, "Success", "Finished", 0.0, "bye\n", "", ""},
		{"runs over", `{"code": "print('x', flush=True)\nwhile True: pass", "language": "python", "run_timeout": 0.3}`, "Failed", "TimeLimitExceeded", nil, "x\n", "", ""},
		{"leaves a child", `{"code": "import os, time\nif os.fork() == 0: time.sleep(60)\nprint(1)", "language": "python"}`, "Success", "Finished", 0.0, "1\n", "", ""},
		{"much output", `{"code": "print('y' * 3000000)", "language": "python"}`, "Success", "Finished", 0.0, strings.Repeat("y", 1<<20), "", ""},
		{"files", `{"code": "import os, helper\nopen('d/out', 'w').write(open('d/in').read() * 2)", "language": "python", "files": {"d/in": "YWI=", "helper.py": ""}, "fetch_files": ["d/out", "none"]}`, "Success", "Finished", 0.0, "", "", "abab"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, got := post(t, server.URL, c.request)
			if status != http.StatusOK || got["status"] != c.status {
				t.Fatalf("HTTP %d: %.500v", status, got)
			}
			run := got["run_result"].(map[string]any)
			if run["status"] != c.run || run["return_code"] != c.code || run["stdout"] != c.stdout || !strings.HasSuffix(run["stderr"].(string), c.stderr) {
				t.Errorf("got %.500v", run)
			}
			if out, _ := got["files"].(map[string]any)["d/out"].(string); out != base64.StdEncoding.EncodeToString([]byte(c.files)) {
				t.Errorf("files: %v", got["files"])
			}
			for _, field := range []string{"message", "compile_result", "executor_pod_name"} {
				if _, there := got[field]; !there {
					t.Errorf("no field %s", field)
				}
			}
		})
	}
	for _, request := range []string{
		``, `[]`, `{"code": "", "language": "cpp"}`, `{"code": "", "language": "python", "run_timeout": -1}`,
		`{"code": "", "language": "python", "files": {"../x": ""}}`, `{"code": "", "language": "python", "fetch_files": ["/etc/passwd"]}`,
	} {
		if status, got := post(t, server.URL, request); status != http.StatusUnprocessableEntity || got["detail"] == "" {
			t.Errorf("%s: HTTP %d %v", request, status, got)
		}
	}
}

func TestRunCodePytest(t *testing.T) {
	p := openPool(t, Config{Workers: 1})
	if report, err := p.Run(t.Context(), Program{Code: "import pytest"}, nil); err != nil || !report.Loads {
		t.Skip("this Python has no pytest")
	}
	for body, want := range map[string]string{"assert 1 == 1": "Success", "assert 1 == 2": "Failed"} {
		got, err := p.RunCode(t.Context(), &RunCodeRequest{Language: "pytest", Code: "def test_it():\n    " + body + "\n", RunTimeout: 60})
		if err != nil || got.Status != want || !strings.Contains(got.RunResult.Stdout, "test_main.py") {
			t.Errorf("%s: %+v, %v", body, got, err)
		}
	}
}

func TestServeCommand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := make(chan string, 1)
	done := make(chan error, 1)
	c := ServeCommand{Address: "127.0.0.1:0", BodyMiB: 16, Drain: time.Second, Flags: Flags{SandboxLevel: "open", Sandboxes: 1, CallTimeout: time.Second, JobTimeout: 10 * time.Second, MemoryMiB: 256}}
	go func() {
		done <- c.Run(ctx, writerFunc(func(p []byte) { out <- string(p) }), slog.New(slog.DiscardHandler))
	}()
	var url string
	select {
	case line := <-out:
		url = strings.TrimSuffix(strings.Fields(line)[0], "/run_code")
	case err := <-done:
		t.Fatal(err)
	}
	response, err := http.Get(url + "/v1/ping")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if diff := cmp.Diff("\"pong\"\n", string(bytes.Clone(body))); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if err := <-done; err != nil {
		t.Error(fmt.Errorf("serve: %w", err))
	}
}

type writerFunc func([]byte)

func (w writerFunc) Write(p []byte) (int, error) { w(p); return len(p), nil }
