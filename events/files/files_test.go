package files_test

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"codea1/events/files"
)

// A file that is not regular is refused with its name and kind, and is not opened.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	socket, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if err := errors.Join(
		os.WriteFile(at("file"), []byte("text"), 0o600), os.Symlink("file", at("link")),
		syscall.Mkfifo(at("pipe"), 0o600), os.Mkdir(at("folder"), 0o700), os.Symlink("/dev/zero", at("device")),
	); err != nil {
		t.Fatal(err)
	}
	opens := map[string]func(name string) (io.ReadCloser, error){
		"path": func(name string) (io.ReadCloser, error) { return files.Open(at(name)) },
		"FS":   func(name string) (io.ReadCloser, error) { return files.OpenFS(os.DirFS(dir), name) },
	}
	for how, open := range opens {
		for _, name := range []string{"file", "link"} {
			f, err := open(name)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(f); err != nil || string(text) != "text" {
				t.Errorf("%s, %s: %q, %v", how, name, text, err)
			}
			f.Close()
		}
		for name, kind := range map[string]string{"pipe": "a named pipe", "folder": "a directory", "device": "a device", "socket": "a socket"} {
			if _, err := open(name); err == nil || !strings.HasSuffix(err.Error(), name+" is "+kind+"; want a regular file") {
				t.Errorf("%s, %s: %v", how, name, err)
			}
		}
		if _, err := open("none"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", how, err)
		}
	}
}
