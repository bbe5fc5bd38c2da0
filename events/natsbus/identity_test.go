package natsbus_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"codea1/events"
	"codea1/events/bustest"
	"codea1/events/natsbus"
)

// key makes a key pair of one kind.
func key(t *testing.T, make func() (nkeys.KeyPair, error)) (pair nkeys.KeyPair, public string, seed []byte) {
	t.Helper()
	pair, makeErr := make()
	if makeErr != nil {
		t.Fatal(makeErr)
	}
	public, publicErr := pair.PublicKey()
	seed, seedErr := pair.Seed()
	if err := errors.Join(publicErr, seedErr); err != nil {
		t.Fatal(err)
	}
	return pair, public, seed
}

// write writes a file that only its owner may read, and returns its name.
func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// credentials returns a server that trusts an operator, with one account, and
// the credentials file of a user of that account.
func credentials(t *testing.T) (natsserver.Options, string) {
	t.Helper()
	operator, operatorKey, _ := key(t, nkeys.CreateOperator)
	account, accountKey, _ := key(t, nkeys.CreateAccount)
	_, systemKey, _ := key(t, nkeys.CreateAccount)
	_, userKey, userSeed := key(t, nkeys.CreateUser)
	sign := func(claims jwt.Claims, by nkeys.KeyPair) string {
		token, err := claims.Encode(by)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	trusted := jwt.NewOperatorClaims(operatorKey)
	trusted.SystemAccount = systemKey
	claims := jwt.NewAccountClaims(accountKey)
	claims.Limits.JetStreamLimits = jwt.JetStreamLimits{
		MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit,
	}
	resolver := new(natsserver.MemAccResolver)
	for public, claims := range map[string]jwt.Claims{accountKey: claims, systemKey: jwt.NewAccountClaims(systemKey)} {
		if err := resolver.Store(public, sign(claims, operator)); err != nil {
			t.Fatal(err)
		}
	}
	creds, err := jwt.FormatUserConfig(sign(jwt.NewUserClaims(userKey), account), userSeed)
	if err != nil {
		t.Fatal(err)
	}
	return natsserver.Options{
		TrustedOperators: []*jwt.OperatorClaims{trusted}, SystemAccount: systemKey, AccountResolver: resolver,
	}, write(t, "user.creds", creds)
}

// startServer starts a server with the given configuration and returns its
// address.
func startServer(t *testing.T, options *natsserver.Options) string {
	t.Helper()
	if options.MaxPayload == 0 {
		options.MaxPayload = 16 << 20
	}
	options.Host, options.Port, options.NoSigs = "127.0.0.1", natsserver.RANDOM_PORT, true
	s, err := natsserver.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server is not ready")
	}
	return s.ClientURL()
}

func TestServerWithoutJetStream(t *testing.T) {
	t.Parallel()
	url := startServer(t, new(natsserver.Options))
	bus, err := natsbus.Connect(t.Context(), natsbus.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	wantSentence(t, bus.EnsureStream(bounded(t), "r1"), url, "JetStream", "nats-server -js")
}

// A server without a configuration would accept all events except large ones,
// and their stage would try for ever.
func TestServerOfSmallMessages(t *testing.T) {
	t.Parallel()
	url := startServer(t, &natsserver.Options{MaxPayload: 1 << 20})
	_, err := natsbus.Connect(t.Context(), natsbus.Config{URL: url})
	wantSentence(t, err, url, "1048576 bytes", "max_payload", "16MB")
}

func TestIdentities(t *testing.T) {
	t.Parallel()
	_, public, seed := key(t, nkeys.CreateUser)
	seedFile := write(t, "user.nk", seed)
	certFile, keyFile, tls := bustest.Certificate(t)
	trusting, credsFile := credentials(t)
	_, otherCredsFile := credentials(t)
	for name, c := range map[string]struct {
		server natsserver.Options
		good   natsbus.Config
		bad    natsbus.Config
	}{
		"User":  {natsserver.Options{Username: "u", Password: "secret"}, natsbus.Config{User: "u", Password: "secret"}, natsbus.Config{User: "u", Password: "wrong"}},
		"Token": {natsserver.Options{Authorization: "token"}, natsbus.Config{Token: "token"}, natsbus.Config{}},
		"NKey":  {natsserver.Options{Nkeys: []*natsserver.NkeyUser{{Nkey: public}}}, natsbus.Config{NKeyFile: seedFile}, natsbus.Config{}},
		"Creds": {trusting, natsbus.Config{CredsFile: credsFile}, natsbus.Config{CredsFile: otherCredsFile}},
		"TLS":   {natsserver.Options{TLSConfig: tls, TLSTimeout: 10}, natsbus.Config{CAFile: certFile, CertFile: certFile, KeyFile: keyFile}, natsbus.Config{CAFile: certFile}},
		"UserOverTLS": {
			natsserver.Options{TLSConfig: tls, TLSTimeout: 10, Username: "u", Password: "secret"},
			natsbus.Config{CAFile: certFile, CertFile: certFile, KeyFile: keyFile, User: "u", Password: "secret"},
			natsbus.Config{CAFile: certFile, CertFile: certFile, KeyFile: keyFile, User: "u", Password: "wrong"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.server.JetStream, c.server.StoreDir = true, t.TempDir()
			url := startServer(t, &c.server)
			c.good.URL, c.bad.URL = url, url
			c.good.MaxStreamBytes = 1 << 30 // a default server reserves at most the free disk space
			c.bad.ConnectTimeout = 100 * time.Millisecond
			bus, err := natsbus.Connect(t.Context(), c.good)
			if err != nil {
				t.Fatal(err)
			}
			defer bus.Close()
			if _, err := bus.Read(bounded(t), events.ReadConfig{Run: "r1"}); err != nil {
				t.Error(err)
			}
			_, err = natsbus.Connect(t.Context(), c.bad)
			wantSentence(t, err, c.bad.URL)
			for _, secret := range []string{c.bad.Password, c.good.Token} {
				if len(secret) > 1 && strings.Contains(err.Error(), secret) {
					t.Errorf("%q holds a secret", err)
				}
			}
		})
	}
}
