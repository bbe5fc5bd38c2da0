// Package s3test runs an S3 server as a process of its own, for tests that kill it.
//
// Clients reach it through a proxy in the test's process: the address stays when the
// server starts again on another port, and the test can break a request on its way.
package s3test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3bolt"
	"go.etcd.io/bbolt"
)

// Bucket and AccessKey exist on the server.
const (
	Bucket    = "weights"
	AccessKey = "codea1"
)

const (
	fileEnv = "CODEA1_TEST_S3_FILE"
	ageEnv  = "CODEA1_TEST_S3_AGE"
)

// Main runs the server and never returns in a process that Start made. In another
// process it sets the credentials for the server. A TestMain calls it first.
func Main() {
	file := os.Getenv(fileEnv)
	if file == "" {
		for name, value := range map[string]string{
			"AWS_ACCESS_KEY_ID": AccessKey, "AWS_SECRET_ACCESS_KEY": "secret-of-the-test", "AWS_SESSION_TOKEN": "",
			"AWS_WEB_IDENTITY_TOKEN_FILE": "", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "", "AWS_CONTAINER_CREDENTIALS_FULL_URI": "",
		} {
			if err := os.Setenv(name, value); err != nil {
				panic(err)
			}
		}
		return
	}
	fmt.Println(serve(file))
	os.Exit(1)
}

func serve(file string) error {
	// A killed process loses nothing that it has written, only a power cut does.
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		return err
	}
	backend := s3bolt.New(db)
	if found, err := backend.BucketExists(Bucket); err != nil || !found {
		if err = backend.CreateBucket(Bucket); err != nil {
			return err
		}
	}
	options := []gofakes3.Option{gofakes3.WithIntegrityCheck(true)}
	if age, err := time.ParseDuration(os.Getenv(ageEnv)); err == nil {
		options = append(options, gofakes3.WithTimeSource(gofakes3.FixedTimeSource(time.Now().Add(-age))))
	}
	s3 := gofakes3.New(backend, options...).Server()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // no timeouts in a test
		if !strings.Contains(r.Header.Get("Authorization"), "Credential="+AccessKey+"/") {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `<?xml version="1.0"?><Error><Code>InvalidAccessKeyId</Code><Message>the key is unknown</Message></Error>`)
			return
		}
		s3.ServeHTTP(w, r)
	}))
}

// Server is an S3 server in another process.
type Server struct {
	// Age is how far the server's clock is behind.
	Age time.Duration
	// URL is the endpoint for clients.
	URL string

	t    testing.TB
	file string

	mu    sync.Mutex
	fault func(w http.ResponseWriter, r *http.Request) bool
	cmd   *exec.Cmd
	proxy *httputil.ReverseProxy // nil while no server runs
}

// New returns a server that does not run yet.
func New(t testing.TB) *Server {
	s := &Server{t: t, file: filepath.Join(t.TempDir(), "s3.bolt")}
	front := httptest.NewServer(http.HandlerFunc(s.pass))
	s.URL = front.URL
	t.Cleanup(front.Close)
	t.Cleanup(s.Kill)
	return s
}

// Address returns the address of a store in the bucket.
func (s *Server) Address(prefix string) string {
	return "s3://" + Bucket + "/" + prefix + "?region=us-east-1&endpoint=" + url.QueryEscape(s.URL)
}

// Start starts the process.
func (s *Server) Start() *Server {
	s.t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), fileEnv+"="+s.file, ageEnv+"="+s.Age.String())
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	address, parseErr := url.Parse("http://" + strings.TrimSpace(line))
	if err != nil || parseErr != nil {
		_ = cmd.Process.Kill()
		s.t.Fatalf("the S3 server did not start: %q, %v: does TestMain call s3test.Main?", line, err)
	}
	proxy := httputil.NewSingleHostReverseProxy(address)
	proxy.Transport = &http.Transport{DisableKeepAlives: true}
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cmd, s.proxy = cmd, proxy
	return s
}

// Kill ends the process with SIGKILL. It does nothing if none runs.
func (s *Server) Kill() {
	s.mu.Lock()
	cmd := s.cmd
	s.cmd, s.proxy = nil, nil
	s.mu.Unlock()
	if cmd != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// Break calls fault before each request; true means that it has answered. nil ends it.
func (s *Server) Break(fault func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

// Forward sends a request to the server.
func (s *Server) Forward(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	proxy := s.proxy
	s.mu.Unlock()
	if proxy == nil {
		panic(http.ErrAbortHandler) // as a connection that is reset
	}
	proxy.ServeHTTP(w, r)
}

func (s *Server) pass(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	fault := s.fault
	s.mu.Unlock()
	if fault == nil || !fault(w, r) {
		s.Forward(w, r)
	}
}
