package sandboxfusion

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codea1/consumers/execution/sandbox"
)

const secret = "a-secret-of-the-test"

// TestServeGuards: web pages, strangers and other types of content are refused
// before the body is read.
func TestServeGuards(t *testing.T) {
	server := httptest.NewServer(Handler(openPool(t, sandbox.Config{Workers: 1}), ServeLimits{Token: secret, Hosts: []string{"sandbox"}}))
	defer server.Close()
	client := server.Client()
	for _, c := range []struct {
		name, path, host, origin, authorization, content string
		want                                             int
	}{
		{name: "right", want: 200},
		{name: "its name", host: "Sandbox:8080", want: 200},
		{name: "localhost", host: "localhost:1", want: 200},
		{name: "IPv6", host: "[::1]:8080", want: 200},
		{name: "IPv6 without a port", host: "[::1]", want: 200},
		{name: "charset", content: "application/json; charset=utf-8", want: 200},
		{name: "scheme in small letters", authorization: "bearer " + secret, want: 200},
		{name: "page", origin: "http://127.0.0.1", want: 403},
		{name: "page of a file", origin: "null", want: 403},
		{name: "rebound name", host: "evil.example:8080", want: 403},
		{name: "name that begins alike", host: "sandbox.evil.example", want: 403},
		{name: "number as a name", host: "127.0.0.1.evil.example", want: 403},
		{name: "no token", authorization: "-", want: 401},
		{name: "wrong token", authorization: "Bearer " + secret + "x", want: 401},
		{name: "part of the token", authorization: "Bearer " + secret[:5], want: 401},
		{name: "empty token", authorization: "Bearer ", want: 401},
		{name: "other scheme", authorization: "Basic " + secret, want: 401},
		{name: "form", content: "application/x-www-form-urlencoded", want: 415},
		{name: "text", content: "text/plain", want: 415},
		{name: "no type", content: "-", want: 415},
		{name: "ping without a token", path: "/v1/ping", authorization: "-", want: 200},
		{name: "ping by a page", path: "/v1/ping", origin: "http://evil.example", want: 403},
		{name: "ping by a rebound name", path: "/v1/ping", host: "evil.example", want: 403},
	} {
		method := http.MethodPost
		if c.path != "" {
			method = http.MethodGet
		} else {
			c.path = "/run_code"
		}
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+c.path, strings.NewReader(`{"code": "", "language": "python"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = c.host
		for header, value := range map[string][2]string{
			"Origin": {c.origin}, "Authorization": {c.authorization, "Bearer " + secret}, "Content-Type": {c.content, "application/json"},
		} {
			if value[0] == "" {
				value[0] = value[1]
			}
			if value[0] != "" && value[0] != "-" {
				r.Header.Set(header, value[0])
			}
		}
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil || response.StatusCode != c.want || strings.Contains(string(text), "SandboxError") {
			t.Errorf("%s: HTTP %d %s, %v; want %d", c.name, response.StatusCode, text, err, c.want)
		}
	}
}

// TestTokenOfBothSides: the client sends the token that the server asks for.
func TestTokenOfBothSides(t *testing.T) {
	server := httptest.NewServer(Handler(openPool(t, sandbox.Config{Workers: 1, FileBytes: 16 << 20}), ServeLimits{Token: secret}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "token")
	flags := &sandbox.Flags{Sandbox: server.URL, SandboxLevel: "isolated", Sandboxes: 1, CallTimeout: 20 * time.Second, JobTimeout: 40 * time.Second, MemoryMiB: 256, SandboxTokenFile: file}
	for text, want := range map[string]string{
		"":                       "want one line of at least 16",
		"short":                  "want one line of at least 16",
		secret + "\n" + secret:   "want one line of at least 16",
		secret + "x\n":           "401",
		"\n" + secret + "  \r\n": "",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := Open(t.Context(), flags, nil)
		if err == nil {
			err = p.Close()
		}
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) || strings.Contains(got, secret) {
			t.Errorf("%q: got %s, want %q", text, got, want)
		}
	}
	flags.SandboxTokenFile = filepath.Join(t.TempDir(), "none")
	if _, err := Open(t.Context(), flags, nil); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "--sandbox-token-file") {
		t.Errorf("no such file: %v", err)
	}
}

// slowClient opens a connection that reads little at a time and sends a request's
// header with a part of its body.
func slowClient(t *testing.T, address, body string, sent int) *net.TCPConn {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	if err := connection.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(connection, "POST /run_code HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", address, len(body), body[:sent]); err != nil {
		t.Fatal(err)
	}
	return connection.(*net.TCPConn)
}

// TestServeSlowClients: a client that sends half a body, or does not read, holds no
// place, and is dropped.
func TestServeSlowClients(t *testing.T) {
	const size = 24 << 20 // more than the buffers of a connection hold
	large := fmt.Sprintf(`{"code": "open('large', 'wb').write(bytes(%d))", "language": "python", "fetch_files": ["large"], "run_timeout": 60}`, size)
	handler := func(limits ServeLimits) (address string) {
		server := httptest.NewServer(Handler(openPool(t, sandbox.Config{Workers: 1, FileBytes: 32 << 20}), limits))
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	t.Run("holds no place", func(t *testing.T) {
		address := handler(ServeLimits{}) // one place
		for range 3 {
			slowClient(t, address, large, 40)
			slowClient(t, address, large, len(large))
		}
		// A place is taken while the programs of the slow clients run, and no longer.
		for {
			status, got := post(t, "http://"+address, `{"code": "print(1)", "language": "python"}`)
			if status == http.StatusOK && got["status"] == "Success" {
				break
			}
			if status != http.StatusServiceUnavailable {
				t.Fatalf("HTTP %d %v", status, got)
			}
			time.Sleep(10 * time.Millisecond)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	t.Run("sends half", func(t *testing.T) {
		text, err := io.ReadAll(slowClient(t, handler(ServeLimits{idle: 10 * time.Millisecond}), large, 40))
		if err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 408 ") || !strings.Contains(string(text), "did not come in time") {
			t.Errorf("got %s, %v", text, err)
		}
	})
	t.Run("sends byte by byte", func(t *testing.T) {
		connection := slowClient(t, handler(ServeLimits{body: 100 * time.Millisecond}), large, 0)
		for at := 0; ; at = (at + 1) % len(large) {
			if _, err := connection.Write([]byte(large[at : at+1])); err != nil {
				return // the server has closed it
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	t.Run("ends early", func(t *testing.T) {
		connection := slowClient(t, handler(ServeLimits{}), large, 40)
		if err := connection.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(connection); err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 400 ") {
			t.Errorf("got %s, %v", text, err)
		}
	})
	t.Run("reads nothing", func(t *testing.T) {
		connection := slowClient(t, handler(ServeLimits{response: time.Millisecond}), large, len(large))
		if text, err := io.ReadAll(connection); len(text) > size { // the answer would be longer
			t.Errorf("got %d bytes, %v", len(text), err)
		}
	})
}
