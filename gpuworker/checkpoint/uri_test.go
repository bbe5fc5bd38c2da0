package checkpoint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestURIRoundTrip(t *testing.T) {
	for _, dir := range []string{
		"/runs/r1/checkpoints/code/v000012", "/a b/c", "/100%/x", "/q?a=1#frag", "/ü/日本", "/a+b&c;d:e@f", `/back\slash`, "/[v6]", "/",
		"/bytes\xff\xfe",
	} {
		uri, err := URI(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DirOf(uri); err != nil || got != dir {
			t.Errorf("%q -> %q -> %q, %v", dir, uri, got, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		dir := filepath.Clean("/" + strings.ReplaceAll(rapid.String().Draw(t, "dir"), "\x00", ""))
		uri, err := URI(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DirOf(uri); err != nil || got != dir {
			t.Fatalf("%q -> %q -> %q, %v", dir, uri, got, err)
		}
	})
}

func TestDirOfRefusesNonLocalPaths(t *testing.T) {
	for _, uri := range []string{
		"", "/plain/path", "s3://bucket/key", "http://host/x", "file://other-host/x", "file:relative", "file:///a/../b",
		"file:///a?x=1", "file:///a#b", "file:///a%zz", "file://user@localhost/a",
	} {
		if dir, err := DirOf(uri); err == nil {
			t.Errorf("%q names %q", uri, dir)
		}
	}
	if dir, err := DirOf("file://localhost/a"); err != nil || dir != "/a" {
		t.Errorf("file://localhost/a names %q, %v", dir, err)
	}
}

func FuzzDirOf(f *testing.F) {
	for _, uri := range []string{"file:///a/v000001", "file://localhost/a%20b", "file:///a/../b", "s3://b/k", "file://%", ""} {
		f.Add(uri)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		dir, err := DirOf(uri)
		if err != nil {
			return
		}
		again, err := URI(dir)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := DirOf(again); err != nil || back != dir {
			t.Fatalf("%q names %q, which is %q, which names %q, %v", uri, dir, again, back, err)
		}
	})
}

func TestLocate(t *testing.T) {
	dir := t.TempDir()
	here, gone := filepath.Join(dir, "here", "v000001"), filepath.Join(dir, "gone", "v000001")
	if err := os.MkdirAll(here, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(here, weightsFile), []byte("weights"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ stated, folder, want string }{
		{here, filepath.Join(dir, "else"), here},
		{here, "", here},
		{gone, filepath.Dir(here), here},
		{gone, filepath.Join(dir, "else"), gone}, // the follower waits for it
		{gone, "", gone},
	} {
		uri, err := URI(tt.stated)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := locate(uri, tt.folder); err != nil || got != tt.want {
			t.Errorf("%s with %q: %s, %v; want %s", tt.stated, tt.folder, got, err, tt.want)
		}
	}
	if _, err := locate("s3://bucket/key", dir); err == nil {
		t.Error("the URI of an object store is accepted")
	}
}
