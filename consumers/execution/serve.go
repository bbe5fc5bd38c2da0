package execution

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"time"
)

// The protocol of SandboxFusion's POST /run_code, as far as it is about Python.

// RunCodeRequest asks for a program to be run.
type RunCodeRequest struct {
	Code           string            `json:"code"`
	Language       string            `json:"language"`        // python or pytest
	CompileTimeout float64           `json:"compile_timeout"` // Python has no compile step
	RunTimeout     float64           `json:"run_timeout"`     // seconds; 0 means 10
	MemoryLimitMB  int64             `json:"memory_limit_MB"` // the server's own limit holds
	Stdin          string            `json:"stdin"`
	Files          map[string]string `json:"files"`       // relative path to base64
	FetchFiles     []string          `json:"fetch_files"` // relative paths to return
}

// RunCodeResponse says what became of a program.
type RunCodeResponse struct {
	Status          string            `json:"status"` // Success, Failed or SandboxError
	Message         string            `json:"message"`
	CompileResult   *CommandResult    `json:"compile_result"`
	RunResult       *CommandResult    `json:"run_result"`
	ExecutorPodName *string           `json:"executor_pod_name"`
	Files           map[string]string `json:"files"`
}

// CommandResult is how one command ended.
type CommandResult struct {
	Status        string  `json:"status"` // Finished, Error or TimeLimitExceeded
	ExecutionTime float64 `json:"execution_time"`
	ReturnCode    *int    `json:"return_code"`
	Stdout        string  `json:"stdout"`
	Stderr        string  `json:"stderr"`
}

const (
	maxRequestBytes   = 16 << 20
	maxRunTimeout     = 5 * time.Minute
	defaultRunTimeout = 10 * time.Second
	// watchSlack is what the harness has for ending a program that ran over its
	// time, before the pool ends the harness.
	watchSlack = 5 * time.Second
)

// validate returns the time that the program has.
func (r *RunCodeRequest) validate() (time.Duration, error) {
	if r.Language != "python" && r.Language != "pytest" {
		return 0, fmt.Errorf("language %q: this sandbox runs python and pytest", r.Language)
	}
	for name := range r.Files {
		if !localPath(name) {
			return 0, fmt.Errorf("files: %q is no relative path", name)
		}
	}
	for _, name := range r.FetchFiles {
		if !localPath(name) {
			return 0, fmt.Errorf("fetch_files: %q is no relative path", name)
		}
	}
	limit := time.Duration(r.RunTimeout * float64(time.Second))
	switch {
	case r.RunTimeout == 0:
		return defaultRunTimeout, nil
	case !(r.RunTimeout > 0) || r.RunTimeout > maxRunTimeout.Seconds():
		return 0, fmt.Errorf("run_timeout: %v is outside 0 to %v seconds", r.RunTimeout, maxRunTimeout.Seconds())
	}
	return limit, nil
}

func localPath(name string) bool {
	clean := path.Clean(name)
	return name != "" && clean != "." && !path.IsAbs(clean) && clean != ".." && !strings.HasPrefix(clean, "../") && !strings.ContainsRune(name, 0)
}

// RunCode runs a whole program, with its input and output, in a child of its
// own. The error is about the request, ctx's, or a *SandboxError.
func (p *Pool) RunCode(ctx context.Context, request *RunCodeRequest) (*RunCodeResponse, error) {
	limit, err := request.validate()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRequest, err)
	}
	item, err := json.Marshal(map[string]any{
		"code": request.Code, "language": request.Language, "stdin": request.Stdin, "seconds": limit.Seconds(),
		"files": nonNil(request.Files), "fetch_files": append([]string{}, request.FetchFiles...),
	})
	if err != nil {
		return nil, err
	}
	s, err := p.run(ctx, job{kind: jobPrograms, items: []string{string(item)}, budget: limit + watchSlack, each: limit + watchSlack})
	if err != nil {
		return nil, err
	}
	if len(s.replies) == 0 || s.replies[0].tag != tagValue {
		reason := "the program ended its watcher"
		if len(s.replies) > 0 {
			reason = p.outcome(s.replies[0]).Detail
		}
		return &RunCodeResponse{Status: "Failed", Message: reason, RunResult: &CommandResult{Status: "Error"}, Files: map[string]string{}}, nil
	}
	var end struct {
		Overtime   bool              `json:"overtime"`
		ReturnCode *int              `json:"return_code"`
		Seconds    float64           `json:"seconds"`
		Stdout     string            `json:"stdout"`
		Stderr     string            `json:"stderr"`
		Files      map[string]string `json:"files"`
	}
	if err := json.Unmarshal([]byte(s.replies[0].text), &end); err != nil {
		return nil, &SandboxError{Op: "run program", Err: err}
	}
	response := &RunCodeResponse{Status: "Failed", Files: nonNil(end.Files)}
	response.RunResult = &CommandResult{Status: "Finished", ExecutionTime: end.Seconds, ReturnCode: end.ReturnCode, Stdout: end.Stdout, Stderr: end.Stderr}
	switch {
	case end.Overtime:
		response.RunResult.Status = "TimeLimitExceeded"
	case end.ReturnCode != nil && *end.ReturnCode == 0:
		response.Status = "Success"
	}
	return response, nil
}

var errRequest = errors.New("the request")

func nonNil(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// HTTP returns the handler of POST /run_code and GET /v1/ping.
func (p *Pool) HTTP() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/ping", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, "pong") })
	mux.HandleFunc("POST /run_code", p.serveRunCode)
	return mux
}

func (p *Pool) serveRunCode(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequestBytes))
	var request RunCodeRequest
	if err == nil {
		err = json.Unmarshal(body, &request)
	}
	if err != nil {
		writeJSON(w, http.StatusUnprocessableEntity, map[string]string{"detail": err.Error()})
		return
	}
	response, err := p.RunCode(r.Context(), &request)
	switch {
	case errors.Is(err, errRequest):
		writeJSON(w, http.StatusUnprocessableEntity, map[string]string{"detail": err.Error()})
	case err != nil:
		writeJSON(w, http.StatusOK, &RunCodeResponse{Status: "SandboxError", Message: err.Error(), Files: map[string]string{}})
	default:
		writeJSON(w, http.StatusOK, response)
	}
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}
