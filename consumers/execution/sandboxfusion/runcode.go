package sandboxfusion

import (
	"context"
	"fmt"
	"maps"
	"time"

	"codea1/consumers/execution/sandbox"
)

// This file is the part of SandboxFusion's POST /run_code that is about Python.

// RunCodeRequest is a program to run. A field that is missing or null has its zero
// value.
type RunCodeRequest struct {
	Code           string             `json:"code"`
	Language       string             `json:"language"`        // python or pytest
	CompileTimeout float64            `json:"compile_timeout"` // seconds; Python has no compile step
	RunTimeout     float64            `json:"run_timeout"`     // seconds; 0 means 10
	MemoryLimitMB  int64              `json:"memory_limit_MB"` // MiB of address space; 0 or less means the server's own
	Stdin          string             `json:"stdin"`
	Files          map[string]*string `json:"files"`       // relative path to base64; null: no file
	FetchFiles     []string           `json:"fetch_files"` // relative paths to return
}

// RunCodeResponse says how a program ended.
type RunCodeResponse struct {
	Status          string            `json:"status"` // Success (exit status 0), Failed or SandboxError
	Message         string            `json:"message"`
	CompileResult   *CommandResult    `json:"compile_result"` // always null
	RunResult       *CommandResult    `json:"run_result"`     // null with SandboxError
	ExecutorPodName *string           `json:"executor_pod_name"`
	Files           map[string]string `json:"files"` // the fetched files that exist, base64
}

// CommandResult is how one command ended.
type CommandResult struct {
	Status        string  `json:"status"`         // Finished or TimeLimitExceeded; from other servers also Error
	ExecutionTime float64 `json:"execution_time"` // seconds
	ReturnCode    *int    `json:"return_code"`    // minus the signal that ended it; null where it ran over its time
	Stdout        string  `json:"stdout"`
	Stderr        string  `json:"stderr"`
}

const (
	languagePython = "python"
	languagePytest = "pytest"

	statusSuccess      = "Success"
	statusFailed       = "Failed"
	statusSandboxError = "SandboxError"

	resultFinished = "Finished"
	resultError    = "Error"
	resultOvertime = "TimeLimitExceeded"
)

const (
	defaultBodyBytes  = 16 << 20
	maxRunTimeout     = 5 * time.Minute
	defaultRunTimeout = 10 * time.Second
	// maxStreamBytes bounds each output of a program; the rest is dropped.
	maxStreamBytes = 1 << 20
	// minMemoryMiB is the memory of Python itself.
	minMemoryMiB = 64
)

// requestError is a field of a request that this server does not accept.
type requestError struct {
	field  string
	kind   string // a word of the protocol, such as missing
	reason string
}

func (e *requestError) Error() string { return e.field + ": " + e.reason }

// validate returns the time limit of the program. The error is a *requestError.
func (r *RunCodeRequest) validate(config sandbox.Config) (time.Duration, error) {
	memoryMiB := config.MemoryBytes >> 20
	switch {
	case r.Language == "":
		return 0, &requestError{"language", "missing", "Field required"}
	case r.Language != languagePython && r.Language != languagePytest:
		return 0, &requestError{"language", "literal_error", fmt.Sprintf("%q: this sandbox runs python and pytest", r.Language)}
	case r.MemoryLimitMB > memoryMiB:
		return 0, &requestError{"memory_limit_MB", "less_than_equal", fmt.Sprintf("%d is more than %d, the limit of this sandbox (--memory-mib)", r.MemoryLimitMB, memoryMiB)}
	case r.MemoryLimitMB > 0 && r.MemoryLimitMB < minMemoryMiB:
		return 0, &requestError{"memory_limit_MB", "greater_than_equal", fmt.Sprintf("%d is less than the %d that Python needs", r.MemoryLimitMB, minMemoryMiB)}
	case !(r.CompileTimeout >= 0):
		return 0, &requestError{"compile_timeout", "greater_than_equal", fmt.Sprintf("%v is less than 0", r.CompileTimeout)}
	}
	for field, text := range map[string]string{"code": r.Code, "stdin": r.Stdin} {
		if int64(len(text)) > config.FileBytes {
			return 0, &requestError{field, "too_long", fmt.Sprintf("%d bytes, over the limit of %d", len(text), config.FileBytes)}
		}
	}
	if n := len(r.FetchFiles); n > maxNames {
		return 0, &requestError{"fetch_files", "too_long", fmt.Sprintf("%d names, over the limit of %d", n, maxNames)}
	}
	for _, name := range r.FetchFiles {
		if reason := badPath(name); reason != "" {
			return 0, &requestError{"fetch_files", "value_error", fmt.Sprintf("%.100q %s", name, reason)}
		}
	}
	switch {
	case r.RunTimeout == 0:
		return defaultRunTimeout, nil
	case !(r.RunTimeout > 0) || r.RunTimeout > maxRunTimeout.Seconds():
		return 0, &requestError{"run_timeout", "value_error", fmt.Sprintf("%v is outside 0 to %v seconds", r.RunTimeout, maxRunTimeout.Seconds())}
	}
	return time.Duration(r.RunTimeout * float64(time.Second)), nil
}

// RunCode runs a whole program, with its input and output, in a child of its
// own. The error says which field of the request is wrong, or is ctx's,
// sandbox.ErrClosed or a *sandbox.Error. The program itself never causes one.
func RunCode(ctx context.Context, pool *sandbox.Pool, request *RunCodeRequest) (*RunCodeResponse, error) {
	config := pool.Config()
	limit, err := request.validate(config)
	if err != nil {
		return nil, err
	}
	files, err := request.cleanFiles(config)
	if err != nil {
		return nil, err
	}
	end, err := pool.RunProgram(ctx, &sandbox.WholeProgram{
		Code: request.Code, Language: request.Language, Stdin: request.Stdin, Seconds: limit.Seconds(),
		Files: files, FetchFiles: append([]string{}, request.FetchFiles...),
		MemoryBytes: request.MemoryLimitMB << 20, StreamBytes: maxStreamBytes, FetchBytes: config.FileBytes,
	})
	if err != nil {
		return nil, err
	}
	r := &RunCodeResponse{Status: statusFailed, Files: map[string]string{}}
	r.fill(end)
	return r, nil
}

func (r *RunCodeResponse) fill(end *sandbox.ProgramEnd) {
	r.RunResult = &CommandResult{Status: resultFinished, ExecutionTime: end.Seconds, ReturnCode: end.ReturnCode, Stdout: end.Stdout, Stderr: end.Stderr}
	maps.Copy(r.Files, end.Files)
	if len(end.LeftOut) > 0 {
		r.Message = fmt.Sprintf("too large to return: %q", end.LeftOut)
	}
	switch {
	case end.Overtime:
		r.RunResult.Status = resultOvertime
	case end.ReturnCode != nil && *end.ReturnCode == 0:
		r.Status = statusSuccess
	}
}
