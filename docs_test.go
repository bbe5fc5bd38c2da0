package main

import (
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/prometheus/client_golang/prometheus"

	"codea1/consumers/dashboard"
	"codea1/events"
	"codea1/events/settings"
)

// fence is a block of a document.
type fence struct {
	page, language string
	lines          []string
}

// documents returns the paths of the documents for users.
func documents(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("docs/*.md")
	if err != nil || len(pages) < 8 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	return append(pages, "README.md", filepath.Join(pythonLibrary, "README.md"))
}

// fences returns the blocks of documents.
func fences(t *testing.T, pages ...string) (all []fence) {
	t.Helper()
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		inside := false
		for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", " ")) {
			line = strings.TrimRight(line, "\n")
			switch language, is := strings.CutPrefix(line, "```"); {
			case is && !inside:
				all = append(all, fence{page: page, language: language})
				inside = true
			case is:
				inside = false
			case inside:
				f := &all[len(all)-1]
				f.lines = append(f.lines, line)
			}
		}
	}
	return all
}

// Every command in a block of the language sh works, in the order of its page, and the
// Python of a notebook reads the files that they wrote. The
// pages call the run first that the tests share as r, and their trainings are small.
// The slow ones run where CODEA1_TEST_THOROUGH is set.
func TestCommandsOfTheDocuments(t *testing.T) {
	t.Parallel()
	var environment []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, envPrefix) {
			environment = append(environment, variable)
		}
	}
	environment = append(environment, envPrefix+"NO_DASHBOARD=true")
	for _, pair := range pairs(train("--steps", "2")[2:]) {
		environment = append(environment, settings.Variable(envPrefix, pair[0])+"="+pair[1])
	}
	first := regexp.MustCompile(`\bfirst\b`)
	slow := regexp.MustCompile(`^codea1 (train|doctor|sandbox check|replay fork|replay retrain)`)
	dirs := map[string]string{}
	for _, f := range fences(t, documents(t)...) {
		if f.language == "python" && dirs[f.page] != "" {
			t.Run(f.page+" "+f.lines[0], func(t *testing.T) { runNotebook(t, dirs[f.page], f.lines) })
		}
		if f.language != "sh" {
			continue
		}
		if dirs[f.page] == "" {
			dirs[f.page] = copied(t)
			for name, content := range map[string]string{"mine.jsonl": "problems.jsonl", "mine-test.jsonl": "heldout.jsonl"} {
				text, err := os.ReadFile(filepath.Join("testdata", content))
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dirs[f.page], name), text, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, line := range f.lines {
			if slow.MatchString(line) && !thorough() {
				continue
			}
			command := exec.Command("sh", "-c", first.ReplaceAllString(line, "r"))
			command.Dir, command.Env = dirs[f.page], append(slices.Clone(environment), "TMPDIR="+t.TempDir())
			if out, err := command.CombinedOutput(); err != nil {
				t.Errorf("%s: %s: %v\n%s", f.page, line, err, out)
			}
		}
	}
	if len(dirs) < 4 {
		t.Errorf("pages with commands: %v", dirs)
	}
}

// runNotebook runs the Python of a notebook, which prints a table.
func runNotebook(t *testing.T, dir string, lines []string) {
	python := cmp.Or(os.Getenv("TAP_PYTHON"), "python3")
	notebook := exec.Command(python, "-c", strings.Join(lines, "\n"))
	notebook.Dir = dir
	out, err := notebook.CombinedOutput()
	if err != nil && (strings.Contains(string(out), "ModuleNotFoundError") || strings.Contains(string(out), "ImportError")) {
		required(t, "no duckdb, pandas, polars and pyarrow in "+python+", or in TAP_PYTHON: "+string(out))
	}
	if err != nil || !strings.Contains(string(out), "step") {
		t.Errorf("%v, want a table by step\n%s", err, out)
	}
}

// Commands in other blocks need another machine or a server. They have no unknown
// command or flag.
func TestGrammarOfTheDocuments(t *testing.T) {
	t.Parallel()
	placeholder := regexp.MustCompile(`\b[A-Z]{2,}\b`)
	program := strings.NewReplacer("go run . ", "codea1 ", "./codea1 ", "codea1 ", "$stage", events.StageRewards, "samples.jsonl", "-")
	word := regexp.MustCompile(`'[^']*'|\S+`)
	seen := map[string]int{}
	var cli CLI
	parser, err := newParser(&cli, kong.Exit(func(int) {}))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fences(t, documents(t)...) {
		for _, line := range f.lines {
			line = strings.SplitN(program.Replace(line), " #", 2)[0]
			if _, body, is := strings.Cut(line, "; do "); is {
				line = strings.TrimSuffix(body, " done")
			}
			words := word.FindAllString(line, -1)
			if end := slices.IndexFunc(words, func(w string) bool { return w == ">" || w == "&" }); end >= 0 {
				words = words[:end]
			}
			if len(words) < 2 || words[0] != "codea1" || f.language == "sh" {
				continue
			}
			seen[f.page]++
			for i, word := range words {
				words[i] = strings.Trim(placeholder.ReplaceAllString(word, "1"), "'\"")
			}
			trace, err := kong.Trace(parser, words[1:])
			if err == nil {
				err = trace.Error
			}
			if err != nil {
				t.Errorf("%s: %s: %v", f.page, line, err)
			}
		}
	}
	if seen["README.md"] < 5 || seen["docs/commands.md"] < 10 || seen["docs/evaluate.md"] < 10 || seen["docs/baselines.md"] < 5 {
		t.Errorf("commands by page: %v", seen)
	}
}

// Links to files lead somewhere.
func TestLinksOfTheDocuments(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	for _, page := range append(documents(t), "DESIGN.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), found[1])); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
}

// The messages that the page of troubles explains are messages of the program.
func TestMessagesOfTheTroubles(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("docs", "troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	err = filepath.WalkDir(".", func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := os.ReadFile(file)
		source.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| `") || len(cells) != 2 {
			continue
		}
		for _, message := range regexp.MustCompile("`[^`]+`").FindAllString(cells[0], -1) {
			for part := range strings.SplitSeq(strings.Trim(message, "`"), "...") {
				if part = strings.Trim(part, " ,"); len(part) < 8 {
					continue
				}
				found++
				if !strings.Contains(source.String(), part) {
					t.Errorf("no message of the program has %q", part)
				}
			}
		}
	}
	if found < 15 {
		t.Errorf("%d messages", found)
	}
}

//go:generate go test -run TestReference -update .

var update = flag.Bool("update", false, "write docs/reference.md")

// docs/reference.md has the commands, the settings, the metrics, the figures and the
// events of this program. `go generate .` writes it.
func TestReference(t *testing.T) {
	page := filepath.Join("docs", "reference.md")
	want := reference(t)
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(page); err != nil || string(have) != want {
		t.Errorf("%s is not that of this program (%v): `go generate .` writes it", page, err)
	}
}

func reference(t *testing.T) string {
	t.Helper()
	var cli CLI
	parser, err := newParser(&cli)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("# Reference\n\n<!-- `go generate .` writes this page. -->\n\n## Commands\n\n`codea1 COMMAND --help` prints the flags and examples.\n\n| command | what it does |\n|---|---|\n")
	cell := strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace
	for _, leaf := range parser.Model.Leaves(true) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", cell(strings.TrimPrefix(leaf.Path(), "codea1 ")), cell(leaf.Help))
	}
	b.WriteString("\n## Settings of a training\n\nA flag of `train`, a key of its YAML file, and a variable: `--learning-rate`, `learning-rate`, `CODEA1_LEARNING_RATE`.\n" +
		"The defaults are those of the preset `tiny`.\n")
	train := parser.Model.Children[slices.IndexFunc(parser.Model.Children, func(n *kong.Node) bool { return n.Name == "train" })]
	var titles []string
	settingRows := map[string]string{}
	for _, flags := range train.Flags {
		title := "General"
		if flags.Group != nil {
			title = flags.Group.Title
		}
		if settingRows[title] == "" {
			titles = append(titles, title)
		}
		initial := flags.Default
		if strings.Contains(initial, "/") { // a path of this machine
			initial = ""
		}
		settingRows[title] += fmt.Sprintf("| `%s` | %s | %s |\n", flags.Name, cell(initial), cell(flags.Help))
	}
	for _, title := range titles {
		fmt.Fprintf(&b, "\n### %s\n\n| setting | default | meaning |\n|---|---|---|\n%s", title, settingRows[title])
	}
	b.WriteString("\n## Metrics of a training\n\nThe page and the probe of the dashboard stage serve them on `/metrics`, besides those of Go (`go_`), of the process (`process_`) and of\n" +
		"its build. [SCALING.md](../events/stage/SCALING.md#metrics) has those of the stages.\n\n| metric | labels | meaning |\n|---|---|---|\n")
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		dashboard.Metrics(dashboard.NewFollower()).(*prometheus.Registry).Describe(descs)
	}()
	desc := regexp.MustCompile(`^Desc\{fqName: "(\w+)", help: "(.*)", constLabels: \{\}, variableLabels: \{(.*)\}\}$`)
	var rows []string
	for d := range descs {
		found := desc.FindStringSubmatch(strings.ReplaceAll(d.String(), ", unit: \"\"", ""))
		if found == nil {
			t.Fatalf("a description that cannot be read: %s", d)
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", found[1], strings.ReplaceAll(found[3], ",", ", "), cell(found[2])))
	}
	slices.Sort(rows)
	b.WriteString(strings.Join(rows, ""))
	b.WriteString("\n## Figures for other tools\n\n`codea1 track` writes these, a row for each step and each evaluation.\n\n| figure | meaning |\n|---|---|\n")
	for name, help := range dashboard.RowFigures() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, cell(help))
	}
	b.WriteString("\n## Events\n\n| type | made by | read by |\n|---|---|---|\n")
	for _, kind := range events.Types() {
		var made, read []string
		for _, s := range events.Stages {
			if slices.Contains(s.Makes, kind) {
				made = append(made, s.Name)
			}
			if slices.Contains(s.Consumes, kind) {
				read = append(read, s.Name)
			}
		}
		fmt.Fprintf(&b, "| [`%s`](../schemas/%s.v%d.json) | %s | %s |\n", kind, kind, events.CurrentVersion(kind), strings.Join(made, ", "), strings.Join(read, ", "))
	}
	return b.String()
}
