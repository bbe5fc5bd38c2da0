package sandboxfusion

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// guard refuses requests that are not from a program with the right to ask: a web
// page must not reach the server through the browser of somebody on this machine.
type guard struct {
	hosts []string // names of the server, besides localhost and addresses
	token string   // of POST /run_code; empty: none is needed
}

// refusal returns the status and the reason with which a request is refused; 0 for a
// request that is not.
func (g *guard) refusal(r *http.Request) (status int, reason string) {
	switch {
	case r.Header.Get("Origin") != "":
		return http.StatusForbidden, "requests of web pages (Origin) are refused"
	case !g.serves(r.Host):
		return http.StatusForbidden, fmt.Sprintf("this server is not %q; name it with --host", r.Host)
	case r.Method != http.MethodPost:
		return 0, ""
	case !g.knows(r.Header.Get("Authorization")):
		return http.StatusUnauthorized, "want the header `Authorization: Bearer TOKEN` with the token of --sandbox-token-file"
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return http.StatusUnsupportedMediaType, fmt.Sprintf("content type %q; want application/json", r.Header.Get("Content-Type"))
	}
	return 0, ""
}

// serves reports whether a Host header names this server. A page that has its own
// name resolved to this machine sends its own name.
func (g *guard) serves(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	named := func(name string) bool { return strings.EqualFold(name, host) }
	return err == nil || named("localhost") || slices.ContainsFunc(g.hosts, named)
}

// knows compares hashes: the time that it takes tells neither the token nor its length.
func (g *guard) knows(authorization string) bool {
	if g.token == "" {
		return true
	}
	scheme, given, _ := strings.Cut(authorization, " ")
	want, have := sha256.Sum256([]byte(g.token)), sha256.Sum256([]byte(strings.TrimSpace(given)))
	return subtle.ConstantTimeCompare(want[:], have[:]) == 1 && strings.EqualFold(scheme, "Bearer")
}

const shortestToken = 16

// readToken reads the secret of a server from a file; no file means no token.
func readToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("--sandbox-token-file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if len(token) < shortestToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("--sandbox-token-file: %s: want one line of at least %d letters, digits and signs of ASCII, without blanks", path, shortestToken)
	}
	return token, nil
}
