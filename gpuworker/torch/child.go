package torch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"
)

// Install is the remedy for a Python without the package or its libraries.
const Install = "`pip install ./gpuworker/torch/python` in the source of codea1 installs it, and --torch-python names the Python that has it"

// child is one Python process. It serves one call at a time.
type child struct {
	command *exec.Cmd
	stderr  *lines
	logger  *slog.Logger
	watch   func(c *child, kind, op string)

	writing  sync.Mutex // of requests: a cancel frame follows one from another goroutine
	requests io.WriteCloser

	last    atomic.Int64 // id of the newest request
	op      atomic.Value // its operation, for watch
	heard   atomic.Int64 // time of the newest frame, in Unix nanoseconds
	hello   chan *answer
	answers chan *answer // of the running call

	ended  chan struct{} // closed when the process has ended
	reason error         // why, once ended is closed
	kill   func(error)   // kills the process for a reason; the first reason counts
}

// startChild starts a child and waits for its greeting.
func startChild(ctx context.Context, options *Options) (*child, error) {
	theirRequests, requests, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirRequests.Close() }()
	answers, theirAnswers, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, requests.Close())
	}
	c := &child{
		command: exec.Command(options.Python, "-m", "codea1_torch", "serve"),
		stderr:  &lines{logger: options.Logger}, logger: options.Logger, watch: options.watch,
		requests: requests, hello: make(chan *answer, 1), answers: make(chan *answer, 1), ended: make(chan struct{}),
	}
	c.op.Store("")
	c.heard.Store(time.Now().UnixNano())
	c.command.ExtraFiles = []*os.File{theirRequests, theirAnswers} // descriptors 3 and 4
	c.command.Stderr = c.stderr
	c.command.Stdout = c.stderr
	// The tokenizers must not fork threads, and nothing is downloaded for a directory.
	c.command.Env = append(os.Environ(), "TOKENIZERS_PARALLELISM=false", "PYTHONUNBUFFERED=1", "PYTHONUTF8=1")
	c.command.WaitDelay = 5 * time.Second
	err = c.command.Start()
	_ = theirAnswers.Close() // otherwise the end of the child does not show
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w; %s", options.Python, err, Install),
			requests.Close(), answers.Close())
	}
	var first sync.Once
	var killed error
	c.kill = func(reason error) {
		first.Do(func() {
			killed = reason
			_ = c.command.Process.Kill()
		})
	}
	go func() {
		readErr := c.read(answers)
		if !errors.Is(readErr, io.EOF) {
			c.kill(readErr)
		}
		waitErr := c.command.Wait()
		c.kill(waitErr) // no reason comes later
		c.stderr.flush()
		if c.reason = killed; killed == nil {
			c.reason = errors.New("it ended by itself")
		}
		_ = requests.Close()
		_ = answers.Close()
		close(c.ended)
	}()
	go c.listen(options.Silence)
	if err := c.greet(ctx, options.StartTimeout); err != nil {
		c.kill(err)
		<-c.ended
		return nil, err
	}
	return c, nil
}

// greet waits for the greeting and checks it.
func (c *child) greet(ctx context.Context, within time.Duration) error {
	overdue := time.NewTimer(within)
	defer overdue.Stop()
	select {
	case h := <-c.hello:
		if h.Protocol != protocolVersion {
			return fmt.Errorf("%w: codea1_torch %s has version %d of the protocol, this codea1 version %d; %s",
				ErrProtocol, h.Package, h.Protocol, protocolVersion, Install)
		}
		c.logger.Info("torch engine started", "python", h.Python, "torch", h.Torch, "transformers", h.Transformers,
			"cuda", h.CUDA, "package", h.Package, "pid", c.command.Process.Pid)
		return nil
	case <-c.ended:
		return c.died()
	case <-overdue.C:
		return fmt.Errorf("%w: it did not start within %v", ErrDied, within)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// died returns the error about the end of the process. It waits for the end.
func (c *child) died() error {
	<-c.ended
	wrote := c.stderr.tail()
	if err := missingModule(c.command.Path, wrote); err != nil {
		return fmt.Errorf("%w: %w", ErrDied, err)
	}
	if wrote != "" {
		return fmt.Errorf("%w: %w; it wrote last:\n%s", ErrDied, c.reason, wrote)
	}
	return fmt.Errorf("%w: %w", ErrDied, c.reason)
}

// listen kills a child that has sent nothing for too long.
func (c *child) listen(silence time.Duration) {
	tick := time.NewTicker(max(silence/8, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if quiet := time.Since(time.Unix(0, c.heard.Load())); quiet > silence {
				c.kill(fmt.Errorf("it sent nothing for %v", quiet.Round(time.Millisecond)))
			}
		case <-c.ended:
			return
		}
	}
}

// read takes frames until the child closes the connection, which is io.EOF.
func (c *child) read(from io.Reader) error {
	for {
		a := new(answer)
		if err := readFrame(from, a); err != nil {
			return err
		}
		c.heard.Store(time.Now().UnixNano())
		op, _ := c.op.Load().(string)
		current := a.ID == uint64(c.last.Load())
		switch a.Kind {
		case kindBeat:
		case kindHello:
			select {
			case c.hello <- a:
			default:
				return fmt.Errorf("%w: a second greeting", ErrProtocol)
			}
		case kindProgress:
			if current && a.Done > 0 {
				c.logger.Debug("torch engine works", "operation", op, "done", a.Done)
			}
		case kindResult, kindError:
			if !current {
				return fmt.Errorf("%w: an answer to request %d while %d runs", ErrProtocol, a.ID, c.last.Load())
			}
		default:
			return fmt.Errorf("%w: a frame of the kind %q", ErrProtocol, a.Kind)
		}
		if c.watch != nil && a.ID > 0 {
			c.watch(c, a.Kind, op)
		}
		if a.Kind == kindResult || a.Kind == kindError {
			select {
			case c.answers <- a:
			default:
				return fmt.Errorf("%w: a second answer to request %d", ErrProtocol, a.ID)
			}
		}
	}
}

// call runs an operation. If ctx ends, it cancels the operation and waits for the
// answer. The error is ErrDied if the child has died.
func (c *child) call(ctx context.Context, op string, fields request) (*answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.op.Store(op)
	id := uint64(c.last.Add(1))
	frame := request{"id": id, "op": op}
	for name, value := range fields {
		frame[name] = value
	}
	if err := c.send(frame); err != nil {
		return nil, err
	}
	select {
	case a := <-c.answers:
		return c.settle(a)
	case <-c.ended:
		return nil, c.died()
	case <-ctx.Done():
	}
	if err := c.send(request{"id": id, "op": opCancel}); err != nil {
		return nil, err
	}
	overdue := time.NewTimer(cancelTimeout)
	defer overdue.Stop()
	select {
	case a := <-c.answers:
		if _, err := c.settle(a); err != nil && !errors.Is(err, context.Canceled) {
			return nil, errors.Join(ctx.Err(), err)
		}
		return nil, ctx.Err()
	case <-c.ended:
	case <-overdue.C:
		c.kill(fmt.Errorf("it did not end a cancelled %s within %v", op, cancelTimeout))
	}
	return nil, errors.Join(ctx.Err(), c.died())
}

// settle turns an answer into a result or an error. After a fatal error the child
// ends.
func (c *child) settle(a *answer) (*answer, error) {
	err := answerError(a)
	if err != nil && a.Fatal {
		c.kill(err)
		return nil, c.died()
	}
	return a, err
}

func (c *child) send(frame request) error {
	c.writing.Lock()
	err := writeFrame(c.requests, frame)
	c.writing.Unlock()
	if err != nil && !errors.Is(err, ErrBadRequest) {
		c.kill(err)
		return c.died()
	}
	return err
}

// close ends the child: it ends when its connection does.
func (c *child) close() {
	_ = c.requests.Close()
	overdue := time.AfterFunc(closeTimeout, func() { c.kill(errors.New("it did not end when it was closed")) })
	defer overdue.Stop()
	<-c.ended
}
