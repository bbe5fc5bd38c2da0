package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"codea1/events"
	"codea1/gpuworker/tiny"
)

// transformersServe serves the checkpoint in dir with `transformers serve` on the CPU,
// until the test ends, and returns the address of its interface.
func transformersServe(t *testing.T, dir string) string {
	t.Helper()
	python := os.Getenv("CODEA1_TEST_TORCH_PYTHON")
	if python == "" {
		t.Skip("CODEA1_TEST_TORCH_PYTHON is not set")
	}
	for range 3 { // another process may take the port first
		free, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := free.Addr().(*net.TCPAddr).Port
		free.Close()
		server := exec.Command(python, "-c", "from transformers.cli.transformers import main; main()",
			"serve", dir, "--host", "127.0.0.1", "--port", fmt.Sprint(port), "--device", "cpu", "--dtype", "float32", "--default-seed", "1")
		server.Env = append(os.Environ(), "HF_HUB_OFFLINE=1", "OMP_NUM_THREADS=1", "HF_HOME="+t.TempDir())
		var output buffer
		server.Stdout, server.Stderr = &output, &output
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = server.Wait() // it is killed
		}()
		t.Cleanup(func() {
			_ = server.Process.Kill() // it may have ended
			<-ended
			if t.Failed() {
				t.Log(output.String())
			}
		})
		if listens(ended, fmt.Sprintf("http://127.0.0.1:%d/health", port)) {
			return fmt.Sprintf("http://127.0.0.1:%d/v1", port)
		}
	}
	t.Fatal("transformers serve has ended before its first answer")
	return ""
}

// listens waits for the first answer from url, or for the end of its server.
func listens(ended <-chan struct{}, url string) bool {
	for {
		if answer, err := http.Get(url); err == nil {
			answer.Body.Close()
			return true
		}
		select {
		case <-ended:
			return false
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// A server that the project does not write, of the same weights, gives the same samples
// and results as the embedded engine, token for token.
func TestTorchTransformersServe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files, err := tiny.Checkpoint(string(events.RoleCode))
	if err != nil {
		t.Fatal(err)
	}
	checkpoint := filepath.Join(dir, "code")
	if err := os.CopyFS(checkpoint, files); err != nil {
		t.Fatal(err)
	}
	heldout, err := filepath.Abs("testdata/heldout.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	address := transformersServe(t, checkpoint)
	eval := func(model, name string, more ...string) {
		must(t, dir, append([]string{"eval", model, heldout, "--preset", "tiny", "--greedy", "--name", name, "--call-timeout", "5s", "--sandboxes", "1"}, more...)...)
	}
	eval("code", "local")
	eval(address, "remote", "--model", checkpoint)
	sameEvaluation(t, dir)
}
