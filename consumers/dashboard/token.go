package dashboard

import (
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
)

// isLoopback reports whether only this machine reaches an address.
func isLoopback(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// admit asks for the token: in the URL that URL returns, in the cookie that a page
// gets for it, or as a bearer token. /healthz says nothing about the run and needs
// none. An empty token admits everyone.
func admit(next http.Handler, token, cookie string) http.Handler {
	if token == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			next.ServeHTTP(w, r)
			return
		}
		given := r.URL.Query().Get("token")
		if c, err := r.Cookie(cookie); err == nil && given == "" {
			given = c.Value
		}
		if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
			given = bearer
		}
		switch {
		case subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1:
			http.Error(w, "this dashboard wants a token: open the URL that the program prints when it starts", http.StatusUnauthorized)
		case r.URL.Path == "/" && r.URL.Query().Has("token"):
			// The token leaves the address bar, so that a copied address has none.
			http.SetCookie(w, &http.Cookie{Name: cookie, Value: token, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
			http.Redirect(w, r, "/", http.StatusSeeOther)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
