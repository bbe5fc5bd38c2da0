package torch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"codea1/gpuworker"
)

// childVariable makes the test binary a child that behaves as the value says. The
// tests of the Go side need no torch.
const childVariable = "CODEA1_TEST_TORCH_CHILD"

// fakeChild is the child. It answers each request with a result, except as its mode
// says.
func fakeChild(mode string) {
	requests, answers := os.NewFile(3, "requests"), os.NewFile(4, "answers")
	var writing sync.Mutex
	send := func(frame map[string]any) {
		writing.Lock()
		defer writing.Unlock()
		if err := writeFrame(answers, frame); err != nil {
			os.Exit(0)
		}
	}
	if mode == "import fails" {
		fmt.Fprintln(os.Stderr, "Traceback (most recent call last):")
		fmt.Fprintln(os.Stderr, "ModuleNotFoundError: No module named 'torch'")
		os.Exit(1)
	}
	version := protocolVersion
	if mode == "other protocol" {
		version = protocolVersion + 1
	}
	fmt.Fprintln(os.Stderr, `{"level": "warning", "message": "a line in JSON", "answer": 42}`)
	fmt.Fprintln(os.Stderr, "a line of a library")
	if mode == "garbage" {
		_, _ = answers.WriteString("Loading weights: 100%\n")
	}
	send(map[string]any{"kind": kindHello, "protocol": version, "package": "0"})
	if mode != "hangs" {
		go func() {
			for {
				time.Sleep(20 * time.Millisecond)
				send(map[string]any{"kind": kindBeat})
			}
		}()
	}
	cancelled := make(chan uint64, 1)
	frames := make(chan map[string]any)
	go func() {
		for {
			frame := map[string]any{}
			if readFrame(requests, &frame) != nil {
				os.Exit(0)
			}
			if frame["op"] == opCancel {
				cancelled <- 0
				continue
			}
			frames <- frame
		}
	}()
	halvings := ""
	for frame := range frames {
		id, op := frame["id"], frame["op"]
		switch {
		case op == opOpen:
			halvings = fmt.Sprint(frame["halvings"])
		case mode == "needs 2 halvings" && op == opSave && halvings != "2":
			send(map[string]any{"kind": kindError, "id": id, "code": "out_of_memory", "message": "rank 1: no memory", "fatal": true})
			time.Sleep(time.Minute) // the parent kills it
		case mode == "dies in "+op.(string):
			fmt.Fprintln(os.Stderr, "last words")
			os.Exit(7)
		case mode == "device fails in "+op.(string):
			send(map[string]any{"kind": kindError, "id": id, "code": "internal", "message": "CUDA error: an illegal memory access", "fatal": true})
			time.Sleep(time.Minute) // the parent kills a child with a failed device
		case mode == "hangs":
			time.Sleep(time.Hour)
		case mode == "waits for cancel":
			<-cancelled
			send(map[string]any{"kind": kindError, "id": id, "code": "cancelled", "message": "cancelled"})
			continue
		case mode == "long frame":
			_, _ = answers.Write([]byte{0xff, 0xff, 0xff, 0xff})
		case mode == "wrong lengths":
			send(map[string]any{"kind": kindResult, "id": id, "prompt": []byte{1, 2, 3}, "tokens": map[string]any{"n": []byte{9, 0, 0, 0}, "v": []byte{}}})
			continue
		}
		send(map[string]any{"kind": kindResult, "id": id, "prompt": []byte{5, 0, 0, 0}})
	}
}

// fake starts an engine with fakeChild as its child.
func fake(t *testing.T, mode string, options Options) (*Engine, error) {
	t.Helper()
	t.Setenv(childVariable, mode)
	options.Python, options.Dir = os.Args[0], t.TempDir()
	if options.Backoff == 0 {
		options.Backoff = time.Millisecond
	}
	e, err := Start(t.Context(), options)
	if err == nil {
		t.Cleanup(func() { _ = e.Close() })
	}
	return e, err
}

func mustFake(t *testing.T, mode string, options Options) *Engine {
	t.Helper()
	e, err := fake(t, mode, options)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func encode(e *Engine) error {
	_, err := e.EncodePrompt([]gpuworker.Message{{Role: "user", Content: "a"}})
	return err
}

func TestChildThatCannotStart(t *testing.T) {
	for mode, want := range map[string]error{"import fails": ErrDied, "other protocol": ErrProtocol, "garbage": ErrProtocol} {
		t.Run(mode, func(t *testing.T) {
			_, err := fake(t, mode, Options{})
			if !errors.Is(err, want) {
				t.Fatalf("error %v, want %v", err, want)
			}
			for _, text := range map[string][]string{
				"import fails":   {"no module torch;", "pip install"},
				"other protocol": {fmt.Sprintf("version %d", protocolVersion+1), fmt.Sprintf("version %d", protocolVersion), "pip install"},
			}[mode] {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("the error lacks %q: %v", text, err)
				}
			}
		})
	}
	t.Run("no Python", func(t *testing.T) {
		_, err := Start(t.Context(), Options{Python: "/nothing/python3", Dir: t.TempDir()})
		if err == nil || !strings.Contains(err.Error(), "--torch-python") {
			t.Errorf("error %v", err)
		}
	})
}

// A child that always dies is started a limited number of times.
func TestDeathsAreBounded(t *testing.T) {
	for _, mode := range []string{"dies in encode", "device fails in encode", "long frame"} {
		t.Run(mode, func(t *testing.T) {
			e := mustFake(t, mode, Options{Deaths: 2})
			err := encode(e)
			if mode == "long frame" {
				if !errors.Is(err, ErrDied) || !errors.Is(err, ErrProtocol) {
					t.Fatalf("error %v", err)
				}
			} else if !errors.Is(err, ErrDied) {
				t.Fatalf("error %v", err)
			}
			if e.started != 3 {
				t.Errorf("%d children, want 3", e.started)
			}
			for _, text := range map[string][]string{
				"dies in encode": {"exit status 7", "last words"}, "device fails in encode": {"illegal memory access"},
			}[mode] {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("the error lacks %q: %v", text, err)
				}
			}
		})
	}
}

// The deaths of a job count on until it brings a result that lasts. Successful
// calls between them do not start the count again.
func TestDeathsOfTrainingAreBounded(t *testing.T) {
	e := mustFake(t, "dies in update", Options{Deaths: 2})
	update := func() error {
		_, err := e.Update(t.Context(), []gpuworker.Sequence{{Prompt: []int32{1}, Tokens: []int32{2}}}, gpuworker.UpdateConfig{Loss: gpuworker.LossSFT})
		return err
	}
	for range 2 {
		if err := update(); !errors.Is(err, gpuworker.ErrStateLost) || !errors.Is(err, ErrDied) {
			t.Fatalf("error %v", err)
		}
		// The weights stay lost until a checkpoint is loaded.
		if err := e.Save(t.Context(), t.TempDir()); !errors.Is(err, gpuworker.ErrStateLost) {
			t.Fatalf("error %v", err)
		}
		if err := e.Load(t.Context(), t.TempDir()); err != nil {
			t.Fatal(err)
		}
	}
	if err := update(); errors.Is(err, gpuworker.ErrStateLost) || !errors.Is(err, ErrDied) {
		t.Errorf("after the last child the error is %v", err)
	}
}

// Ranks without memory for a pass start again with smaller ones, as often as that is
// needed, and the trainer goes back to its checkpoint each time.
func TestRanksWithoutMemoryStartAgainWithSmallerPasses(t *testing.T) {
	e := mustFake(t, "needs 2 halvings", Options{TrainGPUs: 2})
	dir := t.TempDir()
	for lost := 0; ; lost++ {
		if err := e.Load(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		err := e.Save(t.Context(), dir)
		if err == nil {
			if lost != 2 {
				t.Errorf("the trainer went back %d times, want 2", lost)
			}
			return
		}
		if !errors.Is(err, gpuworker.ErrStateLost) {
			t.Fatal(err)
		}
	}
}

func TestSilentChildIsKilled(t *testing.T) {
	e, err := fake(t, "hangs", Options{Deaths: 1, Silence: 200 * time.Millisecond})
	if err == nil { // on a slow machine the child may already be silent for too long when it starts
		err = encode(e)
	}
	if !errors.Is(err, ErrDied) || !strings.Contains(err.Error(), "sent nothing") {
		t.Errorf("error %v", err)
	}
}

func TestCancelReachesTheChild(t *testing.T) {
	e := mustFake(t, "waits for cancel", Options{})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err := e.Sample(ctx, []gpuworker.SampleRequest{{Prompt: []int32{1}, Seeds: []uint64{1}}}, gpuworker.SamplingParams{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if e.started != 1 {
		t.Error("the child did not survive")
	}
}

func TestCloseEndsACall(t *testing.T) {
	e := mustFake(t, "waits for cancel", Options{})
	running := make(chan error)
	go func() { running <- encode(e) }()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-running; !errors.Is(err, ErrClosed) {
		t.Errorf("error %v", err)
	}
	if err := errors.Join(e.Close(), e.Close()); err != nil {
		t.Error(err)
	}
	if err := encode(e); !errors.Is(err, ErrClosed) {
		t.Errorf("error %v", err)
	}
}

func TestWrongLengthsAreRefused(t *testing.T) {
	e := mustFake(t, "wrong lengths", Options{})
	if err := encode(e); !errors.Is(err, ErrProtocol) {
		t.Errorf("error %v", err)
	}
	_, err := e.Sample(t.Context(), []gpuworker.SampleRequest{{Prompt: []int32{1}, Seeds: []uint64{1}}}, gpuworker.SamplingParams{})
	if !errors.Is(err, ErrProtocol) {
		t.Errorf("error %v", err)
	}
}

func TestLogLinesOfTheChild(t *testing.T) {
	var log strings.Builder
	e := mustFake(t, "", Options{Logger: logTo(&log)})
	if err := errors.Join(encode(e), e.Close()); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{`level=WARN msg="a line in JSON" part=torch answer=42`, `level=INFO msg="a line of a library" part=torch`} {
		if !strings.Contains(log.String(), line) {
			t.Errorf("the log lacks %q:\n%s", line, log.String())
		}
	}
}

func FuzzReadFrame(f *testing.F) {
	for _, v := range []any{
		map[string]any{"kind": kindHello, "protocol": 1, "capabilities": []string{"a"}},
		map[string]any{"kind": kindResult, "id": 3, "tokens": ragged{Lengths: []byte{1, 0, 0, 0}, Values: []byte{7, 0, 0, 0}}, "texts": []string{"x"}},
	} {
		body, err := msgpack.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append([]byte{byte(len(body)), 0, 0, 0}, body...))
	}
	f.Add([]byte{5, 0, 0, 0, 0xdf, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, raw []byte) {
		var a answer
		r := strings.NewReader(string(raw))
		if err := readFrame(r, &a); err != nil {
			if errors.Is(err, io.EOF) && len(raw) > 0 {
				t.Errorf("%d bytes read as the end of a connection: %v", len(raw), err)
			}
			return
		}
		if completions, err := a.completions(); err == nil && len(completions) != len(a.Texts) {
			t.Errorf("%d completions, %d texts", len(completions), len(a.Texts))
		}
	})
}
