package track

import (
	"bufio"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"codea1/consumers/dashboard"
)

//go:embed wandb.py
var wandbScript string

// wandbTimeout bounds the start and the end of W&B's SDK, and each of its rows. A row
// waits only for room in a pipe.
const wandbTimeout = time.Minute

// wandb gives the rows to W&B's SDK in a Python process.
type wandb struct {
	command *exec.Cmd
	input   *os.File
	rows    *json.Encoder
	stderr  tail
}

type wandbStart struct {
	ID     string            `json:"id"`
	Run    string            `json:"run"`
	Dir    string            `json:"dir"`
	Config map[string]string `json:"config"`
}

type wandbRow struct {
	Step    int                `json:"step"`
	Figures map[string]float64 `json:"figures"`
}

func openWandb(h *header) (sink, error) {
	dir, err := filepath.Abs(h.dir)
	if err != nil {
		return nil, err
	}
	id := h.id[:16]
	old, err := filepath.Glob(filepath.Join(escapeGlob(dir), "wandb", "offline-run-*-"+id))
	for _, path := range old {
		err = errors.Join(err, os.RemoveAll(path))
	}
	if err != nil {
		return nil, err
	}
	s := &wandb{command: exec.Command(cmp.Or(h.python, "python3"), "-c", wandbScript)}
	s.command.Stderr = &s.stderr
	// Ctrl-C is for this process, which then ends the other one.
	s.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.command.Stdin, s.input, s.rows = read, write, json.NewEncoder(write)
	output, err := s.command.StdoutPipe()
	if err == nil {
		err = s.command.Start()
	}
	err = errors.Join(err, read.Close())
	if s.command.Process == nil {
		return nil, errors.Join(fmt.Errorf("%w; --wandb-python names another Python", err), write.Close())
	}
	if err == nil {
		err = s.send(wandbStart{ID: id, Run: h.run, Dir: dir, Config: h.config})
	}
	if err == nil {
		err = s.ready(output)
	}
	if err != nil {
		return nil, errors.Join(s.close(""), err)
	}
	return s, nil
}

// ready waits until the SDK has made the run.
func (s *wandb) ready(output io.Reader) error {
	answer := make(chan error, 1)
	go func() {
		lines := bufio.NewReader(output)
		_, err := lines.ReadString('\n')
		answer <- err
		_, _ = io.Copy(io.Discard, lines) // a full pipe would stop the process
	}()
	select {
	case err := <-answer:
		if err != nil {
			return errors.New("the run was not made")
		}
		return nil
	case <-time.After(wandbTimeout):
		return fmt.Errorf("the SDK of W&B did not make the run within %v", wandbTimeout)
	}
}

func (s *wandb) send(value any) error {
	if err := s.input.SetWriteDeadline(time.Now().Add(wandbTimeout)); err != nil {
		return err
	}
	return s.rows.Encode(value)
}

func (s *wandb) write(row dashboard.Row) error { return s.send(wandbRow{row.Step, row.Figures}) }

func (s *wandb) flush() error { return nil }

func (s *wandb) close(string) error {
	err := s.input.Close()
	kill := time.AfterFunc(wandbTimeout, func() { _ = syscall.Kill(-s.command.Process.Pid, syscall.SIGKILL) })
	defer kill.Stop()
	if ended := s.command.Wait(); ended != nil {
		err = errors.Join(err, fmt.Errorf("W&B's SDK: %w: %s", ended, s.stderr.last()))
	}
	return err
}

// tail keeps the newest bytes of what is written to it.
type tail []byte

const maxTail = 4096

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	*t = (*t)[max(0, len(*t)-maxTail):]
	return len(p), nil
}

// last returns the last line.
func (t *tail) last() string {
	lines := strings.Split(strings.TrimSpace(string(*t)), "\n")
	return strings.ToValidUTF8(lines[len(lines)-1], "?")
}
