package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"codea1/events/commandline"
	"codea1/events/settings"
)

// A variable that no command reads is refused with the nearest name. Every setting
// is misspelt here by one letter.
func TestMisspeltVariables(t *testing.T) {
	var cli CLI
	parser, err := newParser(&cli)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range settings.Fields(&cli.Train.Settings) {
		name := settings.Variable(envPrefix, f.Key)
		if err := commandline.CheckEnvironment(parser.Model.Node, envPrefix, []string{"PATH=/bin", name + "=1"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, wrong := range []string{name + "X", name[:len(envPrefix)] + "X" + name[len(envPrefix):]} {
			err := commandline.CheckEnvironment(parser.Model.Node, envPrefix, []string{"PATH=/bin", wrong + "=1"})
			if want := "environment variable " + wrong + " sets nothing; the nearest name is " + name + ": "; err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("have %v\nwant %s", err, want)
			}
		}
	}
	t.Setenv("CODEA1_LEARNIN_"+"RATE", "1")
	var out, stderr bytes.Buffer
	if code := run(t.Context(), []string{"train", "--runs-dir", t.TempDir()}, &out, &stderr); code != exitUsage || !strings.Contains(stderr.String(), "CODEA1_LEARNING_RATE") {
		t.Errorf("exit code %d, %s", code, &stderr)
	}
}

// Every variable that a file of the repository names is known.
func TestVariablesOfTheRepositoryAreKnown(t *testing.T) {
	var cli CLI
	parser, err := newParser(&cli)
	if err != nil {
		t.Fatal(err)
	}
	variable := regexp.MustCompile(`\bCODEA1_[A-Z0-9_]*[A-Z0-9]\b`)
	found := map[string]string{}
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (path == ".git" || path == "runs") {
			return fs.SkipDir
		}
		known := []string{".go", ".md", ".yaml", ".txtar", ".py", ".env", ""}
		if !d.Type().IsRegular() || !slices.Contains(known, filepath.Ext(path)) {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, name := range variable.FindAllString(string(text), -1) {
			found[name] = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found["CODEA1_TEST_THOROUGH"] == "" || found["CODEA1_RUN"] == "" {
		t.Errorf("only %v found", found)
	}
	for name, path := range found {
		if err := commandline.CheckEnvironment(parser.Model.Node, envPrefix, []string{name + "=1"}); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}
