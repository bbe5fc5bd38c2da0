package sandboxfusion

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

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
	// Token is the secret that clients of POST /run_code send; empty: none.
	Token string
	// Hosts are the names of the server, besides localhost and addresses.
	Hosts []string

	idle, body, response time.Duration // for tests; 0: idleTimeout and so on
}

// Limits of a slow client.
const (
	idleTimeout     = 10 * time.Second // between two parts of a body
	bodyTimeout     = time.Minute      // for the whole body
	responseTimeout = time.Minute      // for the whole response
	// maxClients is the number of requests that are received or answered, in addition
	// to those that run or wait. It bounds the memory that slow clients hold.
	maxClients = 64
)

// Handler returns the handler of POST /run_code and GET /v1/ping.
//
//	200  the program ran, or the sandbox failed: then status is SandboxError
//	401  the token is missing or wrong
//	403  the request is that of a web page, or names another server
//	408  the body does not come
//	413  the body is too large
//	415  the body is not declared as JSON
//	422  the request is wrong; detail is a list of {loc, msg, type}
//	503  the server is busy; Retry-After says when to ask again
func Handler(pool *sandbox.Pool, limits ServeLimits) http.Handler {
	if limits.BodyBytes == 0 {
		limits.BodyBytes = defaultBodyBytes
	}
	limits.idle, limits.body = cmp.Or(limits.idle, idleTimeout), cmp.Or(limits.body, bodyTimeout)
	limits.response = cmp.Or(limits.response, responseTimeout)
	places := pool.Config().Workers + limits.Waiting
	s := &codeServer{
		pool: pool, limits: limits, places: make(chan struct{}, places), clients: make(chan struct{}, places+maxClients),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/ping", only(http.MethodGet, func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, "pong") }))
	mux.HandleFunc("/run_code", only(http.MethodPost, s.runCode))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { writeDetail(w, http.StatusNotFound, "Not Found") })
	guard := guard{hosts: limits.Hosts, token: limits.Token}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status, reason := guard.refusal(r); status != 0 {
			w.Header().Set("Connection", "close") // the body is not read
			writeDetail(w, status, reason)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

type codeServer struct {
	pool    *sandbox.Pool
	limits  ServeLimits
	clients chan struct{} // one per request that is received, runs, waits or is answered
	places  chan struct{} // one per request that runs or waits
}

// busy is the reason of a 503.
type busy int

func (b busy) Error() string { return fmt.Sprintf("%d requests run or wait already", int(b)) }

// take takes a place without waiting. The caller calls the returned function to give
// it back.
func take(places chan struct{}) (giveBack func(), err error) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	default:
		return nil, busy(cap(places))
	}
}

const retrySeconds = "1"

func (s *codeServer) runCode(w http.ResponseWriter, r *http.Request) {
	giveBack, err := take(s.clients) // before the body is read, which bounds the memory of all bodies
	if err != nil {
		w.Header().Set("Connection", "close")
		writeError(w, err)
		return
	}
	defer giveBack()
	control := http.NewResponseController(w)
	body, err := s.receive(control, http.MaxBytesReader(w, r.Body, s.limits.BodyBytes))
	var response *RunCodeResponse
	if err == nil {
		response, err = s.run(r.Context(), body)
	} else {
		w.Header().Set("Connection", "close") // nobody waits for the rest
	}
	_ = control.SetWriteDeadline(time.Now().Add(s.limits.response)) // every connection of a net/http server has deadlines
	if err != nil {
		writeError(w, err)
	} else {
		writeJSON(w, http.StatusOK, response)
	}
	_ = control.Flush()
	_ = control.SetWriteDeadline(time.Time{}) // the connection may serve another request
}

// receive reads a body if its parts come in time.
func (s *codeServer) receive(control *http.ResponseController, body io.Reader) ([]byte, error) {
	end := time.Now().Add(s.limits.body)
	text, err := io.ReadAll(readerFunc(func(p []byte) (int, error) {
		next := time.Now().Add(s.limits.idle)
		if next.After(end) {
			next = end
		}
		_ = control.SetReadDeadline(next)
		return body.Read(p)
	}))
	if err == nil {
		_ = control.SetReadDeadline(time.Time{}) // otherwise the server takes a long run for the client's end
	}
	return text, err
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// run runs the program of a body. It gives its place back before anything is
// written: a client that reads slowly keeps nobody else waiting.
func (s *codeServer) run(ctx context.Context, body []byte) (*RunCodeResponse, error) {
	giveBack, err := take(s.places)
	if err != nil {
		return nil, err
	}
	defer giveBack()
	request, err := readRequest(body)
	if err != nil {
		return nil, err
	}
	return RunCode(ctx, s.pool, request)
}

func writeError(w http.ResponseWriter, err error) {
	var tooLarge *http.MaxBytesError
	var wrong *requestError
	var full busy
	switch {
	case errors.As(err, &full):
		w.Header().Set("Retry-After", retrySeconds)
		writeDetail(w, http.StatusServiceUnavailable, full.Error())
	case errors.As(err, &tooLarge):
		writeDetail(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is over %d bytes", tooLarge.Limit))
	case errors.As(err, &wrong):
		writeDetail(w, http.StatusUnprocessableEntity, []fieldDetail{wrong.detail()})
	case errors.Is(err, os.ErrDeadlineExceeded):
		writeDetail(w, http.StatusRequestTimeout, "the body did not come in time")
	case errors.Is(err, io.ErrUnexpectedEOF):
		writeDetail(w, http.StatusBadRequest, "the body ends early")
	default:
		writeJSON(w, http.StatusOK, &RunCodeResponse{Status: statusSandboxError, Message: err.Error(), Files: map[string]string{}})
	}
}

// readRequest decodes a body. The error is a *requestError.
func readRequest(text []byte) (*RunCodeRequest, error) {
	var request struct {
		RunCodeRequest
		Code *string `json:"code"` // the only field without a default
	}
	err := json.Unmarshal(text, &request)
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
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // strings and numbers only
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)+1))
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // the client may be gone
}
