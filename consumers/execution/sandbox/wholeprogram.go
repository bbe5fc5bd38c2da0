package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// WholeProgram is a program to run as `python3 main.py`, or a test file to run
// with pytest.
type WholeProgram struct {
	Code        string             `json:"code"`
	Language    string             `json:"language"` // python or pytest
	Stdin       string             `json:"stdin"`
	Files       map[string]*string `json:"files"`        // relative path to base64; null: no file
	FetchFiles  []string           `json:"fetch_files"`  // relative paths of files to return
	Seconds     float64            `json:"seconds"`      // time limit
	MemoryBytes int64              `json:"memory_bytes"` // of address space; 0 or less means the pool's limit
	StreamBytes int64              `json:"stream_bytes"` // bounds each output; the rest is dropped
	FetchBytes  int64              `json:"fetch_bytes"`  // bounds the returned files together
}

// ProgramEnd says how a whole program ended.
type ProgramEnd struct {
	Overtime   bool              `json:"overtime"`
	ReturnCode *int              `json:"return_code"` // minus the signal that ended it; null where it ran over its time
	Seconds    float64           `json:"seconds"`
	Stdout     string            `json:"stdout"`
	Stderr     string            `json:"stderr"`
	Files      map[string]string `json:"files"`    // base64
	LeftOut    []string          `json:"left_out"` // files that are too large to return
}

// ErrThisMachineOnly refuses a job that only a sandbox on this machine does.
var ErrThisMachineOnly = errors.New("whole programs run, and are isolated, on this machine only, not on a sandbox server")

// watchSlack is the time that the harness has to end a program that ran over its
// time, before the pool ends the harness.
const watchSlack = 5 * time.Second

// RunProgram runs a whole program, with its input and output, in a child of its
// own. The error is ctx's, ErrClosed, ErrThisMachineOnly or a *Error. The
// program itself never causes one: files that do not fit into the sandbox do.
func (p *Pool) RunProgram(ctx context.Context, program *WholeProgram) (*ProgramEnd, error) {
	item, err := json.Marshal(program)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	limit := time.Duration(program.Seconds*float64(time.Second)) + watchSlack
	s, err := p.Do(ctx, Job{
		Kind: JobPrograms, Items: []string{string(item)}, Budget: limit, Each: limit,
		ValueBytes: int(max(program.FetchBytes, 2*program.StreamBytes)),
	})
	if err != nil {
		return nil, err
	}
	end := &ProgramEnd{Seconds: time.Since(began).Seconds()}
	switch {
	case !s.Loads:
		end.killed(s.LoadError)
	case len(s.Replies) == 0 || s.Replies[0].Tag == TagOvertime:
		end.Overtime = true
	case s.Replies[0].Tag == TagMissing:
		end.killed(s.Replies[0].Text)
	case s.Replies[0].Tag != TagValue:
		return nil, &Error{Op: "run a program", Err: errors.New(p.Outcome(s.Replies[0]).Detail)}
	default:
		if err := json.Unmarshal([]byte(s.Replies[0].Text), end); err != nil {
			return nil, &Error{Op: "run a program", Err: err}
		}
	}
	return end, nil
}

// killed is the end of a program that ended the process that watches it.
func (e *ProgramEnd) killed(how string) {
	status := -9
	e.ReturnCode, e.Stderr = &status, how
}
