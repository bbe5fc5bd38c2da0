package openai_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codea1/gpuworker/openai"
)

// An address with a secret, and a key that others can read, are refused without
// repeating them.
func TestNewRefuses(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // the umask may have removed bits
			t.Fatal(err)
		}
		return path
	}
	const address = "http://127.0.0.1:1/v1"
	for _, c := range []struct {
		options openai.Options
		want    string
	}{
		{openai.Options{Model: "m"}, "--server: want http://"},
		{openai.Options{Model: "m", URL: "ftp://a/v1"}, "--server: want http://"},
		{openai.Options{Model: "m", URL: "http://user:secret@a/v1"}, "--server: the address has a user"},
		{openai.Options{Model: "m", URL: "http://a/v1?key=secret"}, "--server: the address has a query"},
		{openai.Options{Model: "m", URL: "http://a:secret/v1"}, "--server: want http://"},
		{openai.Options{URL: address}, "--model: name the model"},
		{openai.Options{Model: "m", URL: address, KeyFile: filepath.Join(dir, "none")}, "no such file"},
		{openai.Options{Model: "m", URL: address, KeyFile: dir}, "is no regular file"},
		{openai.Options{Model: "m", URL: address, KeyFile: file("open", "secret", 0o640)}, "chmod 600"},
		{openai.Options{Model: "m", URL: address, KeyFile: file("empty", " \n", 0o600)}, "does not hold one key"},
		{openai.Options{Model: "m", URL: address, KeyFile: file("lines", "secret\nsecret", 0o600)}, "does not hold one key"},
		{openai.Options{Model: "m", URL: address, CAFile: file("ca", "secret", 0o600)}, "has no certificate"},
	} {
		_, err := openai.New(c.options)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v, want %q", c.options, err, c.want)
		}
	}
}
