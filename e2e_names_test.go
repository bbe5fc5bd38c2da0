package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// wrongNames are command lines of which one name or value is none: of a run, a problem, a group,
// a recipe, a position, a preset, a stage, a benchmark, a file. RUN is a completed run, OLD a
// file that exists.
var wrongNames = `
train --resume nope
train --name r --runs-dir RUNS
train --preset nope
train --problems nope.jsonl
train --problems builtin:nope
train --heldout nope.jsonl
train --code-model nope
train --test-model=nope
train --reward nope
train --reward nope.yaml
train --shadow nope
train --measure-for nope
train --config nope.yaml
train --engine nope
train --python nope/python
train --torch-python nope/python --engine torch --code-model builtin
train --track nope
train --bus ftp://x
train --code-prompt nope.txt
train --judge-key-file nope --judge-model m --judge-server http://127.0.0.1:1 --reward codescaler --heldout builtin:nope
stage nope
stage rewards --run r --bus nats://127.0.0.1:1 --bus-password-file nope
deadletter list --run nope
deadletter list --run nope --from-log
deadletter list --run r --runs-dir RUNS --stage nope
deadletter show --run nope execution.x.1
deadletter show --run r --runs-dir RUNS nope
deadletter retry --run r --runs-dir RUNS nope
config --preset nope
problems list nope.jsonl
problems list builtin:nope
problems show nope
problems show train-0001 --set nope.jsonl
problems check nope.jsonl
problems predict nope.jsonl --out OUT
problems corpus --role nope --rows 1 --out OUT
problems prompt nope
problems prompt train-0001 --role nope
sandbox check --python nope/python
sandbox grade --answers nope.jsonl builtin:heldout
sandbox serve --sandbox-token-file nope
eval nope builtin:heldout
eval RUN nope.jsonl
eval RUN builtin:nope
eval RUN builtin:heldout --test-model nope
eval --resume nope
eval nope.jsonl --samples-file nope.jsonl
eval nope.jsonl --ground-truths
compare nope OLD
compare RUN RUN
experiment nope.yaml
experiment nope.yaml --results
mistakes list nope
mistakes list RUN --problem nope
mistakes list RUN --at nope
mistakes list RUN --at step:999
mistakes list RUN --at 99999999
mistakes show RUN nope
mistakes history RUN nope
mistakes diff nope start end
mistakes export nope
replay verify nope
replay explain nope --group x
replay explain RUN
replay explain RUN --group nope
replay explain RUN --step 999
replay rescore nope
replay rescore RUN --reward nope
replay rescore RUN --reward nope.yaml
replay fork nope OUT
replay fork RUN OUT --at nope
replay fork RUN OUT --at step:999
replay fork RUN OUT --at step:1 --set nope=3
replay fork RUN OUT --at step:1 --set steps=nope
replay fork RUN RUN --at step:1
replay state nope
replay state RUN --at nope
replay retrain nope
replay retrain RUN --role nope
replay scan nope --code x
replay scan RUN --code (
replay scan RUN
replay export nope
replay export RUN --table nope
replay export RUN --type nope
replay export RUN --group nope
replay export RUN --step nope
replay compact nope
replay rebuild nope OUT
replay restore-bus nope --to nats://127.0.0.1:1
replay quarantine nope
dashboard nope
dashboard --run nope
tap nope
tap RUN --type nope
tap RUN --where nope
tap RUN --where 1+
tap RUN --role nope
tap RUN --from nope
track nope --to csv
track RUN --to nope
shadow nope --reward a1
shadow RUN --reward nope
shadow RUN --reward nope.yaml
train-sft nope.jsonl --out OUT
completion nope
doctor --engine nope
`

// A wrong name has the exit code of a wrong command line, in every command that takes one, and
// the message says more than a help page.
func TestWrongNames(t *testing.T) {
	t.Parallel()
	dir := completedRun(t)
	words := strings.NewReplacer("RUNS", filepath.Join(dir, "runs"), "RUN", runPath(dir, "r"), "OLD", filepath.Join(runPath(dir, "r"), "config.yaml"))
	seen := map[string]bool{}
	for line := range strings.Lines(strings.TrimSpace(wrongNames)) {
		var args []string
		for word := range strings.FieldsSeq(words.Replace(line)) {
			args = append(args, strings.Replace(word, "OUT", filepath.Join(t.TempDir(), "out"), 1))
		}
		seen[args[0]] = true
		var problem strings.Builder
		if code := run(t.Context(), args, io.Discard, &problem); code != exitUsage || !strings.HasPrefix(problem.String(), "codea1: ") {
			t.Errorf("codea1 %s: exit code %d, want %d: %s", strings.TrimSpace(line), code, exitUsage, problem.String())
		}
	}
	if _, err := os.Stat("track"); err == nil {
		t.Error("a wrong name leaves the directory track")
	}
	var cli CLI
	parser, err := newParser(&cli)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range parser.Model.Children {
		if !seen[n.Name] && !slices.Contains([]string{"version", "complete"}, n.Name) {
			t.Errorf("no wrong name of the command %s is tried", n.Name)
		}
	}
}

// A file that a run has lost is a failure, and no wrong command line.
func TestLostFileIsNoWrongName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, line := range []string{"tap --bus nats://127.0.0.1:1 r", "deadletter list --run r --bus nats://127.0.0.1:1", "train --bus nats://127.0.0.1:1 --runs-dir " + dir} {
		if code := run(t.Context(), strings.Fields(line), io.Discard, io.Discard); code != exitFailed {
			t.Errorf("codea1 %s: exit code %d, want %d", line, code, exitFailed)
		}
	}
}
