package gpuworker

import (
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCheckpointURIRoundTrip(t *testing.T) {
	for _, dir := range []string{
		"/runs/r1/checkpoints/code/v000012", "/a b/c", "/100%/x", "/q?a=1#frag", "/ü/日本", "/a+b&c;d:e@f", `/back\slash`, "/[v6]", "/",
		"/bytes\xff\xfe",
	} {
		uri, err := CheckpointURI(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := CheckpointDir(uri); err != nil || got != dir {
			t.Errorf("%q -> %q -> %q, %v", dir, uri, got, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		dir := filepath.Clean("/" + strings.ReplaceAll(rapid.String().Draw(t, "dir"), "\x00", ""))
		uri, err := CheckpointURI(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := CheckpointDir(uri); err != nil || got != dir {
			t.Fatalf("%q -> %q -> %q, %v", dir, uri, got, err)
		}
	})
}

func TestCheckpointDirRefusesWhatIsNotALocalPath(t *testing.T) {
	for _, uri := range []string{
		"", "/plain/path", "s3://bucket/key", "http://host/x", "file://other-host/x", "file:relative", "file:///a/../b",
		"file:///a?x=1", "file:///a#b", "file:///a%zz", "file://user@localhost/a",
	} {
		if dir, err := CheckpointDir(uri); err == nil {
			t.Errorf("%q names %q", uri, dir)
		}
	}
	if dir, err := CheckpointDir("file://localhost/a"); err != nil || dir != "/a" {
		t.Errorf("file://localhost/a names %q, %v", dir, err)
	}
}

func FuzzCheckpointDir(f *testing.F) {
	for _, uri := range []string{"file:///a/v000001", "file://localhost/a%20b", "file:///a/../b", "s3://b/k", "file://%", ""} {
		f.Add(uri)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		dir, err := CheckpointDir(uri)
		if err != nil {
			return
		}
		again, err := CheckpointURI(dir)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := CheckpointDir(again); err != nil || back != dir {
			t.Fatalf("%q names %q, which is %q, which names %q, %v", uri, dir, again, back, err)
		}
	})
}
