package sandboxfusion

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"

	"codea1/consumers/execution/sandbox"
)

// ServeLimits bounds the load of a server.
type ServeLimits struct {
	// Waiting is the number of requests that may wait while others run; the server
	// refuses more. 0: none.
	Waiting int
	// BodyBytes bounds a request's body. Default: 16 MiB. The pool's FileBytes
	// bounds each file in addition.
	BodyBytes int64
}

// Handler returns the handler of POST /run_code and GET /v1/ping.
//
//	200  the program ran, or the sandbox failed: then status is SandboxError
//	413  the body is too large
//	422  the request is wrong; detail is a list of {loc, msg, type}
//	503  the server is busy; Retry-After says when to ask again
func Handler(pool *sandbox.Pool, limits ServeLimits) http.Handler {
	if limits.BodyBytes == 0 {
		limits.BodyBytes = defaultBodyBytes
	}
	s := &codeServer{pool: pool, limits: limits, slots: make(chan struct{}, pool.Config().Workers+limits.Waiting)}
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/ping", only(http.MethodGet, func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, "pong") }))
	mux.HandleFunc("/run_code", only(http.MethodPost, s.runCode))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { writeDetail(w, http.StatusNotFound, "Not Found") })
	return mux
}

type codeServer struct {
	pool   *sandbox.Pool
	limits ServeLimits
	slots  chan struct{} // one per request that runs or waits
}

const retrySeconds = "1"

func (s *codeServer) runCode(w http.ResponseWriter, r *http.Request) {
	// Before the body is read, which bounds the memory of all bodies.
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		w.Header().Set("Retry-After", retrySeconds)
		writeDetail(w, http.StatusServiceUnavailable, fmt.Sprintf("%d requests run or wait already", cap(s.slots)))
		return
	}
	request, err := readRequest(http.MaxBytesReader(w, r.Body, s.limits.BodyBytes))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		writeDetail(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is over %d bytes", tooLarge.Limit))
		return
	}
	var response *RunCodeResponse
	if err == nil {
		response, err = RunCode(r.Context(), s.pool, request)
	}
	var wrong *requestError
	switch {
	case errors.As(err, &wrong):
		writeDetail(w, http.StatusUnprocessableEntity, []fieldDetail{wrong.detail()})
	case err != nil:
		writeJSON(w, http.StatusOK, &RunCodeResponse{Status: statusSandboxError, Message: err.Error(), Files: map[string]string{}})
	default:
		writeJSON(w, http.StatusOK, response)
	}
}

// readRequest decodes a body. The error is a *requestError or an error of reading.
func readRequest(body io.Reader) (*RunCodeRequest, error) {
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	var request struct {
		RunCodeRequest
		Code *string `json:"code"` // the only field without a default
	}
	err = json.Unmarshal(text, &request)
	var mistyped *json.UnmarshalTypeError
	switch {
	case errors.As(err, &mistyped):
		_, field, _ := strings.Cut("."+mistyped.Field, ".")
		return nil, &requestError{strings.TrimPrefix(field, "RunCodeRequest."), "type_error", fmt.Sprintf("want %s, have %s", kindInJSON(mistyped.Type), mistyped.Value)}
	case err != nil:
		return nil, &requestError{"", "json_invalid", err.Error()}
	case request.Code == nil:
		return nil, &requestError{"code", "missing", "Field required"}
	}
	request.RunCodeRequest.Code = *request.Code
	return &request.RunCodeRequest, nil
}

func kindInJSON(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Int64:
		return "an integer"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "an array"
	}
	return "an object"
}

// fieldDetail is one entry of a 422's detail.
type fieldDetail struct {
	Type string   `json:"type"`
	Loc  []string `json:"loc"` // body and the field
	Msg  string   `json:"msg"`
}

func (e *requestError) detail() fieldDetail {
	d := fieldDetail{Type: e.kind, Loc: []string{"body"}, Msg: e.reason}
	if e.field != "" {
		d.Loc = append(d.Loc, e.field)
	}
	return d
}

func only(method string, handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != method {
			w.Header().Set("Allow", method)
			writeDetail(w, http.StatusMethodNotAllowed, "Method Not Allowed")
			return
		}
		handle(w, r)
	}
}

func writeDetail(w http.ResponseWriter, status int, detail any) {
	writeJSON(w, status, map[string]any{"detail": detail})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}
