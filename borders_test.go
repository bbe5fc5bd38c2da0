package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"codea1/events"
)

const module = "codea1"

// goPackage is a package as `go list -json` describes it, with its tests.
type goPackage struct {
	ImportPath   string
	GoFiles      []string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// packages lists the packages of this module.
func packages(t *testing.T) []goPackage {
	t.Helper()
	list := exec.Command("go", "list", "-json=ImportPath,GoFiles,Imports,TestImports,XTestImports", "./...")
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	var all []goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// territory returns the part of the module that a package belongs to: a top-level
// folder, or a folder below producers or consumers. It is empty for package main.
func territory(path string) string {
	parts := strings.Split(strings.TrimPrefix(strings.TrimPrefix(path, module), "/"), "/")
	if (parts[0] == "producers" || parts[0] == "consumers") && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// mayImport is the star of imports: every package may import events and schemas,
// events may import schemas, and package main may import everything. All other
// imports stay within a territory.
func mayImport(from, to string) bool {
	f, g := territory(from), territory(to)
	switch f {
	case "", g:
		return true
	case "schemas":
		return false
	case "events":
		return g == "schemas"
	case "consumers/dashboard":
		return g == "events" || g == "schemas" || g == "consumers/evaluation" // it shows these figures
	case "consumers/experiment":
		return g == "events" || g == "schemas" || g == "consumers/evaluation" || g == "consumers/dashboard" // it compares runs by these figures
	case "consumers/scoring":
		return g == "events" || g == "schemas" || g == "consumers/evaluation" || g == "consumers/execution" // it makes these figures of verdicts
	default:
		return g == "events" || g == "schemas"
	}
}

func TestBorders(t *testing.T) {
	joined := map[string]bool{}
	for _, p := range packages(t) {
		for _, to := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if to != module && !strings.HasPrefix(to, module+"/") {
				continue
			}
			if !mayImport(p.ImportPath, to) {
				t.Errorf("%s imports %s: declare the interface it needs, and let package main join the two", p.ImportPath, to)
			}
			if p.ImportPath == module {
				joined[strings.Split(territory(to), "/")[0]] = true
			}
		}
	}
	for _, folder := range []string{"producers", "consumers", "events", "gpuworker", "replay"} {
		if !joined[folder] {
			t.Errorf("package main does not join %s: is the listing complete?", folder)
		}
	}
}

// Only the event log opens a Badger store or knows its files.
func TestBadgerIsImportedByTheEventLogOnly(t *testing.T) {
	const badger, owner = "github.com/dgraph-io/badger/", module + "/replay/eventlog"
	found := false
	for _, p := range packages(t) {
		for _, to := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			switch {
			case !strings.HasPrefix(to, badger):
			case p.ImportPath == owner || strings.HasPrefix(p.ImportPath, owner+"/"):
				found = true
			default:
				t.Errorf("%s imports %s: read the log through %s", p.ImportPath, to, owner)
			}
		}
	}
	if !found {
		t.Errorf("%s does not import Badger: is the listing complete?", owner)
	}
}

// A package with more files is two packages.
func TestPackagesStaySmall(t *testing.T) {
	const most = 30
	for _, p := range packages(t) {
		if len(p.GoFiles) > most {
			t.Errorf("%s has %d production files, want at most %d: split it", p.ImportPath, len(p.GoFiles), most)
		}
	}
}

func TestTheRuleItself(t *testing.T) {
	for _, c := range []struct {
		from, to string
		may      bool
	}{
		{"codea1", "codea1/replay/eventlog", true},
		{"codea1/replay/eventlog", "codea1", false},
		{"codea1/events", "codea1/schemas", true},
		{"codea1/events/natsbus", "codea1/events/bustest", true},
		{"codea1/events", "codea1/replay/mistakes", false},
		{"codea1/schemas", "codea1/events", false},
		{"codea1/replay/eventlog", "codea1/replay/mistakes", true},
		{"codea1/replay/mistakes", "codea1/events/natsbus", true},
		{"codea1/gpuworker/tiny", "codea1/gpuworker", true},
		{"codea1/gpuworker", "codea1/consumers/rewards", false},
		{"codea1/consumers/rewards", "codea1/consumers/execution", false},
		{"codea1/consumers/execution", "codea1/consumers/execution/literal", true},
		{"codea1/consumers/dashboard", "codea1/consumers/evaluation", true},
		{"codea1/consumers/evaluation", "codea1/consumers/dashboard", false},
		{"codea1/consumers/experiment", "codea1/consumers/dashboard", true},
		{"codea1/consumers/experiment", "codea1/consumers/execution", false},
		{"codea1/producers/curriculum", "codea1/producers/problems", false},
		{"codea1/producers/problems", "codea1/producers/problems/internal/generate", true},
	} {
		if mayImport(c.from, c.to) != c.may {
			t.Errorf("%s imports %s: want %v", c.from, c.to, c.may)
		}
	}
}

// The root has the folders of the design and no others.
func TestFoldersOfTheRoot(t *testing.T) {
	known := []string{"producers", "consumers", "events", "gpuworker", "replay", "schemas"}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() || slices.Contains(known, e.Name()) || e.Name() == "testdata" || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		err := filepath.WalkDir(e.Name(), func(path string, _ os.DirEntry, err error) error {
			switch filepath.Ext(path) {
			case ".go", ".py", ".s", ".c", ".js":
				t.Errorf("%s: code belongs in one of %v", path, known)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Stage names are data of events/topology.go; production code elsewhere uses
// its constants.
func TestStageNamesOccurOnlyInTheTopology(t *testing.T) {
	names := map[string]bool{"rollout-": true, "trainer-": true} // also in parts
	for _, s := range events.Stages {
		names[s.Name] = true
	}
	found := false
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
			name := names[text]
			for stage := range names {
				name = name || strings.Contains(text, `name:"`+stage+`"`)
			}
			switch {
			case name && path == filepath.Join("events", "topology.go"):
				found = true
			case name:
				t.Errorf("%s: %s is a stage name: use the constant of events/topology.go", path, literal.Value)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !found {
		t.Error("events/topology.go holds no stage name: does the check find any?")
	}
}
