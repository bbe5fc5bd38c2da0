package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"codea1/consumers/execution/sandbox"
	"codea1/consumers/experiment"
	"codea1/events/commandline"
	"codea1/events/doctor"
	"codea1/producers/problems"
	"codea1/replay/command"
	"codea1/replay/eventlog"
	"codea1/replay/fork"
)

func TestExitCodes(t *testing.T) {
	live := t.Context()
	interrupted, cancel := context.WithCancel(live)
	cancel()
	wrapped := func(err error) error { return fmt.Errorf("%w: more", err) }
	for _, c := range []struct {
		ctx  context.Context
		line string
		err  error
		want int
	}{
		{live, "replay verify <run>", nil, 0},
		{live, "replay verify <run>", errors.New("x"), exitFailed},
		{live, "replay verify <run>", wrapped(&eventlog.CorruptError{}), exitNegative},
		{live, "replay verify <run>", &command.FindingsError{}, exitNegative},
		{live, "replay verify <run>", &fork.OriginError{}, exitNegative},
		{live, "replay state <run>", &eventlog.CorruptError{}, exitFailed},
		{live, "replay retrain <run>", &fork.DivergedError{}, exitNegative},
		{live, "replay retrain <run>", &fork.TokensError{}, exitFailed},
		{live, "problems check <set>", wrapped(problems.ErrCheckFailed), exitNegative},
		{live, "sandbox check", wrapped(sandbox.ErrNotIsolated), exitNegative},
		{live, "train", wrapped(sandbox.ErrNotIsolated), exitFailed},
		{live, "doctor", wrapped(doctor.ErrMissing), exitNegative},
		{interrupted, "train", nil, exitInterrupted},
		{interrupted, "replay verify <run>", context.Canceled, exitInterrupted},
		{interrupted, "stage execution", nil, 0},
		{interrupted, "stage execution", errors.New("x"), exitFailed},
		{interrupted, "sandbox serve", nil, 0},
	} {
		if have := exitCode(c.ctx, c.line, nil, c.err); have != c.want {
			t.Errorf("%s with %v: exit code %d, want %d", c.line, c.err, have, c.want)
		}
	}
	for line, want := range map[string]int{
		"": exitUsage, "--help": 0, "tap --help": 0, "--version": 0, "version": 0, "teach": exitUsage, "tap": exitUsage, "train --steps x": exitUsage,
		"tap --where 1 nowhere": exitUsage, "mistakes list --limit -1 r": exitUsage,
	} {
		var out strings.Builder
		if have := run(live, strings.Fields(line), &out, io.Discard); have != want {
			t.Errorf("codea1 %s: exit code %d, want %d", line, have, want)
		}
		if line == "" && !strings.Contains(out.String(), "Exit codes: 0 done") {
			t.Errorf("codea1 prints %q", out.String())
		}
	}
}

// Every command prints an example, and the program accepts each as a line of that
// command.
func TestExamples(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, file := range []string{"answers.jsonl", "code.jsonl", "problems.jsonl"} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile("first.yaml", []byte(experiment.Example), 0o600); err != nil {
		t.Fatal(err)
	}
	names := slices.Collect(maps.Keys(examples))
	var all CLI
	grammar, err := newParser(&all)
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range grammar.Model.Leaves(true) {
		names = append(names, strings.TrimPrefix(leaf.FullPath(), "codea1 "))
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		found := 0
		for line := range strings.Lines(exampleOf(name)) {
			args, err := shellWords(line)
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(args, "--resume") { // it needs a run
				continue
			}
			var cli CLI
			parser, err := newParser(&cli)
			if err != nil {
				t.Fatal(err)
			}
			parsed, err := parser.Parse(args[1:])
			if err != nil {
				t.Errorf("%s: %v", line, err)
				continue
			}
			if have, _, _ := strings.Cut(parsed.Command()+" <", " <"); have != name {
				t.Errorf("%s: an example of %s", line, have)
			}
			found++
		}
		if found == 0 {
			t.Errorf("%s has no example", name)
		}
	}
}

// shellWords splits a command line as a shell does, up to a redirection.
func shellWords(line string) (words []string, err error) {
	for i, part := range strings.Split(strings.TrimSpace(line), "'") {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		before, _, redirected := strings.Cut(part, ">")
		words = append(words, strings.Fields(before)...)
		if redirected {
			break
		}
	}
	if len(words) == 0 || words[0] != "codea1" {
		return nil, fmt.Errorf("%q does not begin with codea1", line)
	}
	return words, nil
}

func TestCompletion(t *testing.T) {
	var cli CLI
	parser, err := newParser(&cli)
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"":                               "",
		"codea1 re":                      "replay",
		"codea1 mistakes ":               "diff export history list show",
		"codea1 mistakes li":             "list",
		"codea1 mistakes list r --so":    "--sort",
		"codea1 mistakes list --sort ":   "count problem",
		"codea1 mistakes list --sort c":  "count",
		"codea1 replay explain --role t": "test",
		"codea1 tap r --js":              "--json",
		"codea1 compl":                   "completion",
		"codea1 nothing x":               "",
		"codea1 train --warmup-s":        "--warmup-steps",
		"codea1 --log-l":                 "--log-level",
	} {
		if have := commandline.Candidates(parser.Model.Node, line); line != "" && strings.Join(have, " ") != want {
			t.Errorf("%q: %q, want %q", line, have, want)
		}
	}
	for shell, lines := range commandline.Completions {
		if !strings.Contains(lines, "codea1 complete") {
			t.Errorf("%s: %s", shell, lines)
		}
	}
}
