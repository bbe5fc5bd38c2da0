package objects

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"codea1/gpuworker/checkpoint/objects/s3test"
)

func TestMain(m *testing.M) {
	s3test.Main()
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, text string) Store {
	t.Helper()
	address, err := ParseAddress(text)
	if err != nil {
		t.Fatal(err)
	}
	store, err := Open(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// bytesFile returns a file with n bytes, and them.
func bytesFile(t *testing.T, n int) (string, []byte) {
	t.Helper()
	content := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(content)
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, content
}

func get(t *testing.T, s Store, key string, offset int64) []byte {
	t.Helper()
	body, err := s.Get(t.Context(), key, offset)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(body)
	if err := errors.Join(err, body.Close()); err != nil {
		t.Fatal(err)
	}
	return content
}

func TestStores(t *testing.T) {
	server := s3test.New(t).Start()
	for name, address := range map[string]string{
		"directory":       "file://" + filepath.Join(t.TempDir(), "store"),
		"bucket":          server.Address("some/prefix"),
		"bucket's root":   server.Address(""),
		"another's place": server.Address("some/prefix-2"),
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, address)
			ctx := t.Context()
			file, content := bytesFile(t, 70_000)
			for _, key := range []string{"r1/v1/model", "r1/v1/sub/x", "r1/v10/model", "r2/model"} {
				for range 2 { // the second one changes nothing
					if err := s.Put(ctx, key, file); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, offset := range []int{0, 1, 69_999, 70_000} {
				if have := get(t, s, "r1/v1/model", int64(offset)); !bytes.Equal(have, content[offset:]) {
					t.Errorf("from offset %d: %d other bytes", offset, len(have))
				}
			}
			check := func(dir string, want ...string) {
				t.Helper()
				have, err := s.List(ctx, dir)
				slices.Sort(have)
				if d := cmp.Diff(want, have); err != nil || d != "" {
					t.Errorf("list of %s: %v %s", dir, err, d)
				}
			}
			check("r1/v1", "r1/v1/model", "r1/v1/sub/x")
			check("r3")
			if err := s.Remove(ctx, "r1/v1"); err != nil {
				t.Fatal(err)
			}
			check("r1", "r1/v10/model")
			if err := s.Remove(ctx, "r1/v1"); err != nil {
				t.Errorf("remove what is not there: %v", err)
			}
			if _, err := s.Get(ctx, "r1/v1/model", 0); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("get what is not there: %v", err)
			}
			for _, key := range []string{"../x", "r1/../../x", "/etc/x", "r1//x", "", ".", "r1/", `r1\..\x`} {
				_, getErr := s.Get(ctx, key, 0)
				_, listErr := s.List(ctx, key)
				for op, err := range map[string]error{"put": s.Put(ctx, key, file), "remove": s.Remove(ctx, key), "get": getErr, "list": listErr} {
					if err == nil || !strings.Contains(err.Error(), "no clean relative path") {
						t.Errorf("%s %q: %v", op, key, err)
					}
				}
			}
		})
	}
}

func TestLinkOutOfADirectory(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	s := open(t, "file://"+dir)
	file, _ := bytesFile(t, 10)
	if err := errors.Join(os.Symlink(outside, filepath.Join(dir, "r1")), os.WriteFile(filepath.Join(outside, "x"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	_, err := s.Get(t.Context(), "r1/x", 0)
	if putErr := s.Put(t.Context(), "r1/y", file); err == nil || putErr == nil {
		t.Errorf("get %v, put %v", err, putErr)
	}
}

// The parts of an upload that was cut are not sent again, and no object is seen before
// its end.
func TestUploadContinues(t *testing.T) {
	server := s3test.New(t).Start()
	s := open(t, server.Address("p"))
	s.(*bucket).partBytes = 5 << 20
	file, content := bytesFile(t, 12<<20)
	var mu sync.Mutex
	var sent []string
	var stored sync.WaitGroup // of the first two parts
	stored.Add(2)
	server.Break(func(w http.ResponseWriter, r *http.Request) bool {
		part := r.URL.Query().Get("partNumber")
		if part == "" || r.Method != http.MethodPut {
			return false
		}
		mu.Lock()
		sent = append(sent, part)
		mu.Unlock()
		if part == "3" {
			stored.Wait()
			http.Error(w, "broken", http.StatusServiceUnavailable)
			return true
		}
		defer stored.Done()
		server.Forward(w, r)
		return true
	})
	if err := s.Put(t.Context(), "big", file); err == nil {
		t.Fatal("an upload with a failed part has succeeded")
	}
	if _, err := s.Get(t.Context(), "big", 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a cut upload is an object: %v", err)
	}
	sent = nil
	server.Break(func(_ http.ResponseWriter, r *http.Request) bool {
		if part := r.URL.Query().Get("partNumber"); part != "" {
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, part)
		}
		return false
	})
	if err := s.Put(t.Context(), "big", file); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if d := cmp.Diff([]string{"3"}, sent); d != "" {
		t.Errorf("parts sent by the second try: %s", d)
	}
	if have := get(t, s, "big", 0); !bytes.Equal(have, content) {
		t.Error("the object has other bytes")
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name, key, bucket, want string
		age                     time.Duration
	}{
		{name: "key", key: "stranger", bucket: s3test.Bucket, want: "InvalidAccessKeyId: check AWS_ACCESS_KEY_ID"},
		{name: "bucket", key: s3test.AccessKey, bucket: "missing", want: "create the bucket missing"},
		{name: "clock", key: s3test.AccessKey, bucket: s3test.Bucket, age: time.Hour, want: "set the clock"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := s3test.New(t)
			server.Age = c.age
			server.Start()
			t.Setenv("AWS_ACCESS_KEY_ID", c.key)
			s := open(t, strings.Replace(server.Address("p"), s3test.Bucket, c.bucket, 1))
			file, _ := bytesFile(t, 10)
			_, listErr := s.List(t.Context(), "r1")
			for op, err := range map[string]error{"put": s.Put(t.Context(), "x", file), "list": listErr} {
				if op == "put" && c.name != "bucket" && err != nil {
					// A server does not say why it refuses a HEAD request.
					if !errors.Is(err, ErrRefused) {
						t.Errorf("put: %v", err)
					}
					continue
				}
				if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
					t.Errorf("%s: %v", op, err)
				}
			}
		})
	}
}

func TestServerThatIsDown(t *testing.T) {
	server := s3test.New(t)
	s := open(t, server.Address("p"))
	file, content := bytesFile(t, 1000)
	if err := s.Put(t.Context(), "x", file); err == nil || errors.Is(err, ErrRefused) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("put into a server that is down: %v", err)
	}
	server.Start()
	if err := s.Put(t.Context(), "x", file); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	server.Start()
	if have := get(t, s, "x", 0); !bytes.Equal(have, content) {
		t.Error("other bytes after a kill of the server")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.List(ctx, "x"); err == nil {
		t.Error("a list after the end of its context")
	}
}

func TestParseAddress(t *testing.T) {
	for text, want := range map[string]string{
		"file:///a/b":                          "",
		"s3://b":                               "",
		"s3://b/p/q?endpoint=http://h:9000":    "",
		"s3://b/p?region=eu-1":                 "",
		"file://host/a":                        "clean absolute path",
		"file:///a/../b":                       "clean absolute path",
		"file:a":                               "no //",
		"/a/b":                                 "scheme",
		"http://h/b":                           "scheme",
		"s3:///p":                              "no bucket",
		"s3://b/p/../q":                        "prefix",
		"s3://b/p//q":                          "prefix",
		"s3://u:hunter2@b/p":                   "contains a user",
		"s3://b?endpoint=http://u:hunter2@h":   "endpoint",
		"s3://b?endpoint=ftp://h":              "endpoint",
		"s3://b?endpoint=http://h/p":           "endpoint",
		"s3://b?secret=hunter2":                "parameter",
		"s3://b?region=a&region=b":             "parameter",
		"s3://b/p#x":                           "fragment",
		"s3://b/%zz?secret=hunter2":            "no URL",
		"s3://b?endpoint=http://h&region=%zz2": "query",
	} {
		_, err := ParseAddress(text)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", text, err, want)
		case err != nil && strings.Contains(err.Error(), "hunter2"):
			t.Errorf("%s: the error repeats the password: %v", text, err)
		}
	}
}
