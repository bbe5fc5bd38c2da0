package sandboxfusion

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"codea1/consumers/execution/sandbox"
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
	p := openPool(t, sandbox.Config{Workers: 1})
	server := httptest.NewServer(Handler(p, ServeLimits{}))
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
}

// many returns the members of a JSON object with empty files.
func many(name string, count int) string {
	members := make([]string, count)
	for i := range members {
		members[i] = fmt.Sprintf(`"`+name+`": ""`, i)
	}
	return strings.Join(members, ", ")
}

// TestRunCodeTakesOddNames: names that the file system has are no fault.
func TestRunCodeTakesOddNames(t *testing.T) {
	empty := ""
	names := []string{"./a", "b//c", "b/../e", "stdin", "\n", "é\ufffd", "-", "...", strings.Repeat("d/", 63) + "f", strings.Repeat("n", 255), "main.py.d/x"}
	request := &RunCodeRequest{Language: "python", Files: map[string]*string{}, FetchFiles: append(names, "none", "b"), RunTimeout: 60}
	for _, name := range names {
		request.Files[name] = &empty
	}
	got, err := RunCode(t.Context(), openPool(t, sandbox.Config{Workers: 1}), request)
	if err != nil || got.Status != "Success" || len(got.Files) != len(names) {
		t.Errorf("got %+v, %v; want %d files", got, err, len(names))
	}
}

// TestRunCodeRefuses has a request for each way of being wrong.
func TestRunCodeRefuses(t *testing.T) {
	server := httptest.NewServer(Handler(openPool(t, sandbox.Config{Workers: 1}), ServeLimits{}))
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	for request, want := range map[string]string{
		``:                                  "json_invalid [body] unexpected end of JSON input",
		`[]`:                                "type_error [body] want an object, have array",
		`{"code": "", "run`:                 "json_invalid [body] unexpected end of JSON input",
		`{"language": "python"}`:            "missing [body code] Field required",
		`{"code": ""}`:                      "missing [body language] Field required",
		`{"code": 1, "language": "python"}`: "type_error [body code] want a string, have number",
		`{"code": "", "language": "python", "files": {"a": 1}}`:                                         "type_error [body files] want a string, have number",
		`{"code": "", "language": "python", "memory_limit_MB": 1.5}`:                                    "type_error [body memory_limit_MB] want an integer, have number 1.5",
		`{"code": "", "language": "cpp"}`:                                                               `literal_error [body language] "cpp": this sandbox runs python and pytest`,
		`{"code": "", "language": "python", "run_timeout": -1}`:                                         "value_error [body run_timeout] -1 is outside 0 to 300 seconds",
		`{"code": "", "language": "python", "run_timeout": 301}`:                                        "value_error [body run_timeout] 301 is outside 0 to 300 seconds",
		`{"code": "", "language": "python", "compile_timeout": -1}`:                                     "greater_than_equal [body compile_timeout] -1 is less than 0",
		`{"code": "", "language": "python", "memory_limit_MB": 16}`:                                     "greater_than_equal [body memory_limit_MB] 16 is less than the 64 that Python needs",
		`{"code": "", "language": "python", "memory_limit_MB": 4096}`:                                   "less_than_equal [body memory_limit_MB] 4096 is more than 512, the limit of this sandbox (--memory-mib)",
		`{"code": "", "language": "python", "files": {"../x": ""}}`:                                     `value_error [body files] "../x" is not a relative path`,
		`{"code": "", "language": "python", "fetch_files": ["/etc/passwd"]}`:                            `value_error [body fetch_files] "/etc/passwd" is not a relative path`,
		`{"code": "", "language": "python", "files": {"x": "not base64 at all"}}`:                       `value_error [body files] "x" is no base64: illegal base64 data at input byte 3`,
		`{"code": "", "language": "python", "files": {"": ""}}`:                                         `value_error [body files] "" is not a relative path`,
		`{"code": "", "language": "python", "files": {"a/..": ""}}`:                                     `value_error [body files] "a/.." is not a relative path`,
		`{"code": "", "language": "python", "files": {"a\u0000": ""}}`:                                  `value_error [body files] "a\x00" has a NUL byte`,
		`{"code": "", "language": "python", "files": {"a/": ""}}`:                                       `value_error [body files] "a/" is a directory`,
		`{"code": "", "language": "python", "files": {"main.py/a": ""}}`:                                `value_error [body files] "main.py" is a file and a directory`,
		`{"code": "", "language": "python", "files": {"a": "", "a/b": ""}}`:                             `value_error [body files] "a" is a file and a directory`,
		`{"code": "", "language": "python", "files": {"` + strings.Repeat("n", 256) + `": ""}}`:         `value_error [body files] "` + strings.Repeat("n", 100) + `" has a name longer than 255 bytes`,
		`{"code": "", "language": "python", "files": {"` + strings.Repeat("d/", 64) + `f": ""}}`:        `value_error [body files] "` + strings.Repeat("d/", 50) + `" is deeper than 64 directories`,
		`{"code": "", "language": "python", "files": {"` + strings.Repeat("d/", 2000) + `f": ""}}`:      `value_error [body files] "` + strings.Repeat("d/", 50) + `" is longer than 1024 bytes`,
		`{"code": "", "language": "python", "files": {"f": "` + strings.Repeat("AAAA", 1<<19) + `"}}`:   `value_error [body files] "f" is too large: the limit is 1048576 bytes for a file and 8388608 for all`,
		`{"code": "", "language": "python", "files": {` + many("a/%d/f", 5000) + `}}`:                   "too_long [body files] 10001 files and directories, over the limit of 1000",
		`{"code": "", "language": "python", "fetch_files": [` + strings.Repeat(`"f", `, 5000) + `"f"]}`: "too_long [body fetch_files] 5001 names, over the limit of 1000",
		`{"code": "", "language": "python", "fetch_files": ["` + strings.Repeat("d/", 2000) + `f"]}`:    `value_error [body fetch_files] "` + strings.Repeat("d/", 50) + `" is longer than 1024 bytes`,
		`{"code": "", "language": "python", "stdin": "` + strings.Repeat("s", 1<<20+1) + `"}`:           "too_long [body stdin] 1048577 bytes, over the limit of 1048576",
		`{"code": "` + strings.Repeat("#", 1<<20+1) + `", "language": "python"}`:                        "too_long [body code] 1048577 bytes, over the limit of 1048576",
	} {
		status, got := post(t, server.URL, request)
		detail, _ := got["detail"].([]any)
		if status != http.StatusUnprocessableEntity || len(detail) != 1 {
			t.Errorf("%.200s: HTTP %d %v", request, status, got)
			continue
		}
		first := detail[0].(map[string]any)
		if text := fmt.Sprint(first["type"], " ", first["loc"], " ", first["msg"]); text != want {
			t.Errorf("%.200s: got %s, want %s", request, text, want)
		}
	}
	for path, want := range map[string]int{"/run_code": http.StatusMethodNotAllowed, "/run_jupyter": http.StatusNotFound, "/": http.StatusNotFound} {
		response, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]string
		if err := errors.Join(json.NewDecoder(response.Body).Decode(&got), response.Body.Close()); err != nil || response.StatusCode != want || got["detail"] == "" {
			t.Errorf("GET %s: HTTP %d %v, %v", path, response.StatusCode, got, err)
		}
	}
}

// TestRunCodeLarge gives a program more than a mebibyte in every way there is.
func TestRunCodeLarge(t *testing.T) {
	p := openPool(t, sandbox.Config{Workers: 1, FileBytes: 8 << 20})
	const size = 3 << 20
	large := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("f"), size))
	got, err := RunCode(t.Context(), p, &RunCodeRequest{
		Language: "python", Stdin: strings.Repeat("s", size), Files: map[string]*string{"a/large": &large, "none": nil},
		FetchFiles: []string{"a/large", "copy", "a"}, RunTimeout: 60,
		Code: "import os, sys\ntext = sys.stdin.read()\nprint(len(text), set(text), os.path.getsize('a/large'), os.path.exists('none'))\n" +
			"open('copy', 'w').write('c' * (6 << 20))\nsys.stderr.write('e' * (2 << 20))",
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%d {'s'} %d False\n", size, size); got.RunResult.Stdout != want || len(got.RunResult.Stderr) != maxStreamBytes {
		t.Errorf("wrote %.200q and %d bytes, want %q", got.RunResult.Stdout, len(got.RunResult.Stderr), want)
	}
	if got.Files["a/large"] != large || len(got.Files) != 1 || got.Message != `too large to return: ["copy"]` {
		t.Errorf("%d files, message %q", len(got.Files), got.Message)
	}
}

// TestRunCodeMemory: a program's own memory limit holds; 0 and -1 mean the pool's.
func TestRunCodeMemory(t *testing.T) {
	p := openPool(t, sandbox.Config{Workers: 1, MemoryBytes: 1 << 30})
	const code = "try: print(len(bytearray(300 << 20)) >> 20)\nexcept MemoryError: print('too much')"
	for limit, want := range map[int64]string{-1: "300\n", 0: "300\n", 1024: "300\n", 256: "too much\n"} {
		got, err := RunCode(t.Context(), p, &RunCodeRequest{Language: "python", Code: code, MemoryLimitMB: limit, RunTimeout: 60})
		if err != nil || got.RunResult.Stdout != want {
			t.Errorf("%d MB: %+v, %v; want %q", limit, got, err, want)
		}
	}
}

// TestRunCodeEndsItsWatcher: even then there is a return code.
func TestRunCodeEndsItsWatcher(t *testing.T) {
	p := pools.Own(t, func() (*sandbox.Pool, error) {
		return sandbox.OpenAt(t.Context(), sandbox.Config{Workers: 1}, sandbox.LevelOpen)
	})
	got, err := RunCode(t.Context(), p, &RunCodeRequest{Language: "python", Code: "import os, signal, time\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(60)"})
	if err != nil || got.Status != "Failed" || got.RunResult.Status != "Finished" || *got.RunResult.ReturnCode != -9 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// gated is a pool as the backend of another one, which calls before with each job.
type gated struct {
	*sandbox.Pool
	before func()
}

func newGated(t *testing.T, before func()) *sandbox.Pool {
	config := sandbox.Config{Workers: 1}
	behind := openPool(t, config)
	return sandbox.NewPool(behind.Config(), gated{behind, before})
}

func (g gated) Do(ctx context.Context, _ sandbox.Slot, j sandbox.Job) (sandbox.Session, error) {
	g.before()
	return g.Pool.Do(ctx, j)
}

// TestServeLimits fills a server and asks it for more.
func TestServeLimits(t *testing.T) {
	release := make(chan struct{})
	p := newGated(t, func() { <-release })
	server := httptest.NewServer(Handler(p, ServeLimits{Waiting: 1, BodyBytes: 1 << 10}))
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	if status, got := post(t, server.URL, `{"code": "`+strings.Repeat("#", 2<<10)+`", "language": "python"}`); status != http.StatusRequestEntityTooLarge || got["detail"] != "the body is over 1024 bytes" {
		t.Errorf("HTTP %d %v", status, got)
	}
	var waiting errgroup.Group
	for range 2 {
		waiting.Go(func() error {
			for {
				status, got := post(t, server.URL, `{"code": "print(1)", "language": "python"}`)
				if status == http.StatusOK && got["status"] == "Success" {
					return nil
				}
				if status != http.StatusServiceUnavailable { // the one that looks whether it is full was there first
					return fmt.Errorf("HTTP %d %v", status, got)
				}
			}
		})
	}
	full := func() bool {
		// One that is refused before its body is read, and so takes no place.
		response, err := http.Post(server.URL+"/run_code", "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode == http.StatusServiceUnavailable && response.Header.Get("Retry-After") != "1" {
			t.Errorf("it does not say when to ask again: %v", response.Header)
		}
		return response.StatusCode == http.StatusServiceUnavailable
	}
	for !full() {
		time.Sleep(time.Millisecond)
	}
	close(release) // both that were taken in wait until now
	if err := waiting.Wait(); err != nil {
		t.Error(err)
	}
	if status, _ := post(t, server.URL, `{"code": "print(1)", "language": "python"}`); status != http.StatusOK {
		t.Errorf("HTTP %d once there is a place", status)
	}
}

// TestServeDrains stops a server while a program runs, with time for it to end
// and without.
func TestServeDrains(t *testing.T) {
	for _, c := range []struct {
		code, want string
		drain      time.Duration
	}{
		{"import time\ntime.sleep(0.2)", "Success", time.Minute},
		{"while True: pass", "SandboxError", time.Millisecond},
	} {
		runs := make(chan struct{})
		p := newGated(t, func() { close(runs) })
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(RunCodeRequest{Code: c.code, Language: "python", RunTimeout: 60})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var serving, asking errgroup.Group
		serving.Go(func() error { return serve(ctx, listener, Handler(p, ServeLimits{}), c.drain) })
		asking.Go(func() error {
			if status, got := post(t, "http://"+listener.Addr().String(), string(text)); status != http.StatusOK || got["status"] != c.want {
				return fmt.Errorf("HTTP %d %v, want %s", status, got, c.want)
			}
			return nil
		})
		<-runs
		stop()
		if err := errors.Join(asking.Wait(), serving.Wait()); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	}
}

func TestRunCodePytest(t *testing.T) {
	p := openPool(t, sandbox.Config{Workers: 1})
	if report, err := p.Run(t.Context(), sandbox.Program{Code: "import pytest"}, nil); err != nil || !report.Loads {
		t.Skip("this Python has no pytest")
	}
	for body, want := range map[string]string{"assert 1 == 1": "Success", "assert 1 == 2": "Failed"} {
		got, err := RunCode(t.Context(), p, &RunCodeRequest{Language: "pytest", Code: "def test_it():\n    " + body + "\n", RunTimeout: 60})
		if err != nil || got.Status != want || !strings.Contains(got.RunResult.Stdout, "test_main.py") {
			t.Errorf("%s: %+v, %v", body, got, err)
		}
	}
}

func TestServeCommand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := make(chan string, 1)
	done := make(chan error, 1)
	c := ServeCommand{Address: "127.0.0.1:0", BodyMiB: 16, Drain: time.Second, Flags: sandbox.Flags{SandboxLevel: "open", Sandboxes: 1, CallTimeout: time.Second, JobTimeout: 10 * time.Second, MemoryMiB: 256}}
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
