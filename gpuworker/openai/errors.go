package openai

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"codea1/gpuworker"
)

var (
	// ErrRefused is returned if the server refuses a request.
	ErrRefused = errors.New("the model server refuses the request")
	// ErrProtocol is returned if an answer of the server cannot be used.
	ErrProtocol = errors.New("the model server sent an answer that cannot be used")
	// ErrBusy is returned by a Sampler of Once if the server is busy or starting.
	ErrBusy = errors.New("the model server is busy or starting")
	// ErrNoWeights is returned by LoadWeights.
	ErrNoWeights = errors.New("OpenAI's interface has no request that replaces weights")
)

// verdict is the reaction to a failed request.
type verdict int

const (
	final   verdict = iota // the same request would fail again
	suspect                // the request may be the reason: it is repeated a few times
	outage                 // the server or the way to it is the reason: it is repeated without an end
)

// failure is a failed request.
type failure struct {
	err     error
	verdict verdict
	after   time.Duration // that the server asks to wait; 0: it does not say
	busy    bool          // the server is there and cannot answer at present
}

// statusFailure returns the failure of an answer with an HTTP status other than 200.
// text is the begin of its body.
func statusFailure(answer *http.Response, text string, now time.Time) *failure {
	f := &failure{
		err:     fmt.Errorf("%w: %s: %s", ErrRefused, answer.Status, text),
		verdict: suspect, after: retryAfter(answer.Header, now), busy: answer.StatusCode >= 500,
	}
	switch code := answer.StatusCode; code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusPaymentRequired:
		f.verdict = outage // the server accepted key and model at the start
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, statusOverloaded:
		f.verdict, f.busy = outage, true
	default:
		switch {
		case code >= 400 && code < 500:
			f.verdict = final
			if tooLong(text) {
				f.err = fmt.Errorf("%w: %w", gpuworker.ErrPromptTooLong, f.err)
			}
		case code >= 300 && code < 400:
			f.err = fmt.Errorf("%w; it redirects, which is not followed: set --server to the final address", f.err)
		}
	}
	return f
}

// statusOverloaded is the status of some services that have too many users.
const statusOverloaded = 529

// tooLong reports whether a refusal says that the prompt exceeds the context. The
// interface has no one code for it.
func tooLong(text string) bool {
	text = strings.ToLower(text)
	for _, sign := range []string{"context_length_exceeded", "exceed_context_size", "context length", "context size", "context window"} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

// maxRetryAfter bounds the pause that a server can ask for.
const maxRetryAfter = 10 * time.Minute

// retryAfter returns the pause of a Retry-After header: seconds, or a date.
func retryAfter(header http.Header, now time.Time) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && seconds > 0 {
		return time.Duration(min(seconds, maxRetryAfter.Seconds()) * float64(time.Second))
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, min(at.Sub(now), maxRetryAfter))
	}
	return 0
}
