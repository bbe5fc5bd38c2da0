package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"codea1/events/process"
)

// A run whose judge's server is no judge is refused before it begins, with the address and the
// flags. A server that is starting is accepted.
func TestServersThatAreNoJudge(t *testing.T) {
	t.Parallel()
	check := func(reward, url string) error {
		r := &runner{Process: &process.Process{Logger: slog.New(slog.DiscardHandler)}, settings: &mustParse(t, "--reward", reward, "--judge-model", "m", "--judge-server", url).RunSettings}
		return r.checkJudges(t.Context())
	}
	for name, answer := range map[string]string{
		"web page": "<html>Welcome</html>", "other shape": `{"score": 1}`, "other interface": `{"choices": [{"finish_reason": "stop", "message": {"content": "Hello"}}]}`,
		"two scores": `{"data": [{"probs": [1, 2]}]}`, "not a number": `{"data": [{"probs": [NaN]}]}`, "null": `{"data": [{"probs": [null]}]}`, "nothing": "",
		"refusal": "400", "unknown path": "404", "broken": "500", "busy": "503",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if code, err := strconv.Atoi(answer); err == nil {
				w.WriteHeader(code)
			}
			_, _ = fmt.Fprint(w, answer)
		}))
		for _, reward := range []string{"codescaler", "seccoderx"} {
			err := check(reward, server.URL)
			if (name == "busy" || name == "broken") && err == nil { // it may still start
				continue
			}
			if err == nil || !strings.Contains(err.Error(), server.URL) || !strings.Contains(err.Error(), "--judge-server") || !strings.Contains(err.Error(), "--judge-model") {
				t.Errorf("%s, %s: %v", name, reward, err)
			}
		}
		server.Close()
		if err := check("codescaler", server.URL); err == nil || !strings.Contains(err.Error(), server.URL) {
			t.Errorf("a closed server: %v", err)
		}
	}
	if err := check("codescaler", rewardModel(t)); err != nil {
		t.Error(err)
	}
	speaker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"choices": [{"finish_reason": "stop", "message": {"content": "<answer>not vulnerable</answer>"}}]}`)
	}))
	defer speaker.Close()
	if err := check("seccoderx", speaker.URL); err != nil {
		t.Error(err)
	}
}
