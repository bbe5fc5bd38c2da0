package dashboard

import (
	"context"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// An address that other machines reach asks for the token, on every path that shows
// the run. A page keeps it as a cookie and shows an address without it.
func TestTokenBeyondLoopback(t *testing.T) {
	server, err := Listen(t.Context(), "0.0.0.0:0", NewFollower(), nil, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	printed, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	token := printed.Query().Get("token")
	if len(token) < 20 {
		t.Fatalf("the printed address is %s", printed)
	}
	base := "http://127.0.0.1:" + printed.Port()
	get := func(c *http.Client, path, bearer string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if bearer != "" {
			r.Header.Set("Authorization", "Bearer "+bearer)
		}
		response, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response
	}
	stranger := &http.Client{}
	defer stranger.CloseIdleConnections()
	for _, path := range []string{"/", "/api/state", "/events", "/metrics", "/uplot.js", "/nothing"} {
		for _, query := range []string{"", "?token=", "?token=" + strings.ToLower(token), "?token=" + token[:10]} {
			if r := get(stranger, path+query, ""); r.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s%s: status %d", path, query, r.StatusCode)
			}
		}
	}
	if r := get(stranger, "/api/state", "wrong"); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("a wrong bearer token: status %d", r.StatusCode)
	}
	if r := get(stranger, "/metrics", token); r.StatusCode != http.StatusOK {
		t.Errorf("the bearer token: status %d", r.StatusCode)
	}
	if r := get(stranger, "/healthz", ""); r.StatusCode != http.StatusServiceUnavailable { // it follows no run
		t.Errorf("/healthz: status %d", r.StatusCode)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	page := &http.Client{Jar: jar}
	defer page.CloseIdleConnections()
	if r := get(page, "/?token="+token, ""); r.StatusCode != http.StatusOK || r.Request.URL.RawQuery != "" {
		t.Errorf("the page: status %d at %s", r.StatusCode, r.Request.URL)
	}
	if r := get(page, "/api/state", ""); r.StatusCode != http.StatusOK {
		t.Errorf("the state, for the page: status %d", r.StatusCode)
	}
	other, err := Listen(t.Context(), "0.0.0.0:0", NewFollower(), nil, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if strings.Contains(other.URL(), token) {
		t.Error("two dashboards have one token")
	}
}
