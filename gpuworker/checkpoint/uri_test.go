package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"codea1/events"
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
		if got, err := (&events.Checkpoint{URI: uri}).Dir(); err != nil || got != dir {
			t.Errorf("%q -> %q -> %q, %v", dir, uri, got, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		dir := filepath.Clean("/" + strings.ReplaceAll(rapid.String().Draw(t, "dir"), "\x00", ""))
		uri, err := URI(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := (&events.Checkpoint{URI: uri}).Dir(); err != nil || got != dir {
			t.Fatalf("%q -> %q -> %q, %v", dir, uri, got, err)
		}
	})
}

// A checkpoint is found by its version, and only in its folder.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	place := func(path string) {
		t.Helper()
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, weightsFile), []byte("weights"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, at string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, at); err != nil {
			t.Fatal(err)
		}
	}
	folder := Folder{Path: filepath.Join(dir, "r", "checkpoints", "code")}
	elsewhere := filepath.Join(dir, "elsewhere", "checkpoints", "code")
	place(folder.Dir(1))
	place(filepath.Join(elsewhere, "v000001"))
	place(filepath.Join(elsewhere, "v000002"))
	link(filepath.Join(elsewhere, "v000002"), folder.Dir(2))
	link(filepath.Join(elsewhere, "v000001", weightsFile), filepath.Join(folder.Dir(3), weightsFile))
	link("v000001", folder.Dir(4))
	link("../../../elsewhere/checkpoints/code/v000001", folder.Dir(5))
	disk := Folder{Path: filepath.Join(dir, "linked", "checkpoints", "code")} // the folder is on another disk
	link(folder.Path, disk.Path)

	named, err := Describe(t.Context(), folder.Dir(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		folder  Folder
		version int
		uri     string
		want    error
	}{
		{folder, 1, named.URI, nil},
		{folder, 1, "file://localhost" + folder.Dir(1), nil},
		{folder, 1, "file:///mnt/runs/r/checkpoints/code/v000001", nil}, // another machine
		{folder, 1, "file://" + elsewhere + "/v000001", nil},            // exists, but the version of the folder is loaded
		{disk, 1, named.URI, nil},
		{folder, 4, "file:///checkpoints/code/v000004", nil}, // a link inside of the folder
		{folder, 6, "file:///r/checkpoints/code/v000006", fs.ErrNotExist},
		{Folder{Path: filepath.Join(dir, "none", "checkpoints", "code")}, 1, named.URI, fs.ErrNotExist},
		// The same weights, outside of the folder.
		{folder, 2, "file://" + folder.Dir(2), ErrForeign},
		{folder, 3, "file://" + folder.Dir(3), ErrForeign},
		{folder, 5, "file://" + folder.Dir(5), ErrForeign},
	} {
		got, err := tt.folder.Find(t.Context(), tt.version, events.Checkpoint{URI: tt.uri, SHA256: named.SHA256})
		if !errors.Is(err, tt.want) || tt.want == nil && got != tt.folder.Dir(tt.version) {
			t.Errorf("version %d at %q: %q, %v; want %v", tt.version, tt.uri, got, err, tt.want)
		}
	}
	named.SHA256 = strings.Repeat("0", 64)
	var damaged *Error
	if _, err := folder.Find(t.Context(), 1, named); !errors.As(err, &damaged) {
		t.Errorf("another SHA-256: %v", err)
	}
}
