package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"codea1/events"
)

// `codea1 tap` shows each event of a running training once, and its log afterwards.
// A tap that is stopped does not hold the training back. `codea1 shadow` rewards the
// same groups as replay rescore, bit by bit, and a shadow that is killed changes nothing:
// the weights are those of a training without readers. The training has the
// stage shadow, which publishes the same rewards, and the other one does not.
func TestTapCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, dir, train("--steps", "5000", "--name", "r", "--heldout", "", "--shadow", "selfplay")...)
	p.address(t)
	live := start(t, dir, "tap", "r", "--json")
	whole := start(t, dir, "tap", "r", "--json", "--from", "start", "--type", "problem.posed,group.rewarded,policy.updated")
	stopped := start(t, dir, "tap", "r", "--text")
	figures := start(t, dir, "track", "r", "--to", "csv")
	shadow := start(t, dir, "shadow", "r", "--from", "start", "--reward", "selfplay", "--json")
	killed := start(t, dir, "shadow", "r", "--from", "start", "--reward", "a1", "--json")
	running := func() {
		select {
		case <-p.ended:
			t.Fatal("the training ended before the taps had read")
		default:
		}
	}
	trained := func(p *child) int {
		running()
		return strings.Count(p.stdout.String(), `"type":"policy.updated"`)
	}
	eventually(t, "a tap prints", func() bool { running(); return stopped.stdout.String() != "" })
	stopped.signal(t, syscall.SIGSTOP)
	eventually(t, "a shadow prints", func() bool { running(); return killed.stdout.String() != "" })
	killed.signal(t, syscall.SIGKILL)
	killed.wait(t)
	before := 0
	eventually(t, "the live tap prints", func() bool { before = trained(live); return before > 0 })
	eventually(t, "the training goes on while a tap is stopped", func() bool { return trained(live) >= before+6 && trained(whole) >= before+6 })
	eventually(t, "the stage shadow publishes", func() bool { running(); return strings.Count(live.stdout.String(), `"type":"reward.shadowed"`) >= 9 })
	p.interrupt(t)
	stopped.signal(t, syscall.SIGCONT)
	for _, tap := range []*child{live, whole, stopped, figures, shadow} {
		if code := tap.wait(t); code != 0 {
			t.Errorf("a tap ends with the training, with exit code %d", code)
		}
	}
	// The server may end before the last events have reached a tap.
	var logged, posed []tapped
	for _, e := range tappedIn(t, must(t, dir, "tap", "r", "--json")) {
		if e.Type == events.TypeProblemPosed || e.Type == events.TypeGroupRewarded || e.Type == events.TypePolicyUpdated {
			logged = append(logged, e)
		}
	}
	seen := tappedIn(t, whole.stdout.String())
	if len(seen) == 0 || len(seen) > len(logged) || !slices.Equal(seen, logged[:len(seen)]) {
		t.Errorf("from the start: %d events, the log has %d", len(seen), len(logged))
	}
	csv := filepath.Join(dir, "runs", "r", "track", "r.csv")
	followed, err := os.ReadFile(csv)
	must(t, dir, "track", "r", "--to", "csv")
	if read, readErr := os.ReadFile(csv); err != nil || readErr != nil || !bytes.HasPrefix(read, followed) || bytes.Count(followed, []byte("\n")) < 3 {
		t.Errorf("%v, %v: figures of the run\n%s\nand of its log\n%s", err, readErr, followed, read)
	}
	shadowed := rescored(t, shadow.stdout.String())
	again := must(t, dir, "replay", "rescore", "r", "--reward", "selfplay", "--groups", "--json")
	sameShadows(t, must(t, dir, "tap", "r", "--json", "--type", string(events.TypeRewardShadowed)), again)
	for group, line := range rescored(t, again) {
		if got, ok := shadowed[group]; ok && got != line {
			t.Errorf("%s\nrescored %s\nshadowed %s", group, line, got)
		}
	}
	if len(shadowed) < 6 {
		t.Errorf("%d groups were shadowed", len(shadowed))
	}
	if thorough() {
		alone := start(t, t.TempDir(), train("--steps", "5000", "--name", "r", "--heldout", "")...)
		n := 0
		alone.tap(t, func(_ int, m *events.Message) bool {
			if m.Type == events.TypePolicyUpdated {
				n++
			}
			return n < 6
		})
		alone.interrupt(t)
		versions, same := versionsOf(t, dir), 0
		for group, sum := range versionsOf(t, alone.command.Dir) {
			if other := versions[group]; other != "" {
				if same++; other != sum {
					t.Errorf("%s has other weights in a training without readers", group)
				}
			}
		}
		if same < 6 {
			t.Errorf("%d versions were compared", same)
		}
	}
	// The live tap has the whole steps between its first and its last event.
	count := map[tapped]int{}
	for _, e := range tappedIn(t, live.stdout.String()) {
		if count[e]++; e.Type == events.TypeProblemPosed {
			posed = append(posed, e)
		}
	}
	first, last := posed[0].Group[:7], posed[len(posed)-1].Group[:7]
	for _, e := range logged {
		if step := e.Group[:7]; e.Type != events.TypePolicyUpdated && step > first && step < last && count[e] != 1 {
			t.Errorf("the live tap shows %s %s %d times", e.Type, e.Group, count[e])
		}
	}
}

// rescored returns the rewards of each group in the lines of replay rescore and shadow.
func rescored(t *testing.T, lines string) map[string]string {
	t.Helper()
	groups := map[string]string{}
	for line := range strings.Lines(lines) {
		var g struct {
			Group         string
			Before, After json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &g); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if g.Group != "" {
			groups[g.Group] = string(g.Before) + string(g.After)
		}
	}
	return groups
}

// sameShadows compares the events of the stage shadow, as lines of tap, with the lines of
// replay rescore.
func sameShadows(t *testing.T, taps, lines string) {
	t.Helper()
	type group struct {
		Group   string
		After   struct{ Code, Test json.RawMessage }
		Payload struct {
			Shadows []struct{ Code, Test json.RawMessage }
		}
	}
	want, n := map[string]string{}, 0
	for line := range strings.Lines(lines) {
		var g group
		if err := json.Unmarshal([]byte(line), &g); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		want[g.Group] = string(g.After.Code) + string(g.After.Test)
	}
	for line := range strings.Lines(taps) {
		var g group
		if err := json.Unmarshal([]byte(line), &g); err != nil || len(g.Payload.Shadows) != 1 {
			t.Fatalf("%s: %v", line, err)
		}
		s := g.Payload.Shadows[0]
		if rewards, ok := want[g.Group]; ok { // the run may have stopped before the group was rewarded
			n++
			if got := string(s.Code) + string(s.Test); got != rewards {
				t.Errorf("%s\nrescored  %s\npublished %s", g.Group, rewards, got)
			}
		}
	}
	if n < 3 {
		t.Errorf("%d groups have published shadow rewards", n)
	}
}

// versionsOf returns the hash of each policy version of the run r.
func versionsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	for line := range strings.Lines(must(t, dir, "tap", "r", "--json", "--type", "policy.updated")) {
		var e struct {
			Group   string
			Payload events.PolicyUpdated
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Payload.Checkpoint.SHA256 == "" {
			t.Fatalf("%s: %v", line, err)
		}
		sums[e.Group] = e.Payload.Checkpoint.SHA256
	}
	return sums
}

// tapped is an event that a tap has printed.
type tapped struct {
	ID    string
	Type  events.Type
	Group string
}

func tappedIn(t *testing.T, lines string) (all []tapped) {
	t.Helper()
	for line := range strings.Lines(lines) {
		var e tapped
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, e)
	}
	return all
}

// The Python programs of the documents print the events of a running training.
func TestTapInPython(t *testing.T) {
	t.Parallel()
	tapPython(t)
	// The run lasts until the readers have read.
	p := start(t, t.TempDir(), train("--steps", "5000", "--name", "r", "--heldout", "")...)
	address, _ := p.address(t)
	_, figures, tokens, read := startPython(t, filepath.Join(pythonLibrary, "examples", "figures.py"), address, "r", "6")
	readers := map[string][]string{
		// A whole group.rewarded, and the token ids of a compressed code.sampled.
		"docs/commands.md": {
			`(?m)^group\.rewarded s\d{6}-q\d{4} \{.*'recipe': 'a1'.*\}$`,
			`(?m)^code\.sampled s\d{6}-q\d{4} \{.*'entry': 'solve'.*\}\nfirst answer: \[\d+(, \d+)*\]$`,
		},
		filepath.Join(pythonLibrary, "README.md"): {`(?m)^s\d{6}-q\d{4} \[-?[\d.]+, -?[\d.]+\]$`},
	}
	for page, lines := range readers {
		programs := fences(t, page)
		i := slices.IndexFunc(programs, func(f fence) bool { return f.language == "python" })
		if i < 0 {
			t.Fatalf("%s has no Python", page)
		}
		text := strings.NewReplacer("nats://tap:PASSWORD@127.0.0.1:4222", address, `"RUN"`, `"r"`).Replace(strings.Join(programs[i].lines, "\n"))
		program := filepath.Join(t.TempDir(), "reader.py")
		if err := os.WriteFile(program, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, printed, stderr, ended := startPython(t, program, address, "r")
		eventually(t, "the reader of "+page+" prints events", func() bool {
			select {
			case <-ended:
				t.Fatalf("the reader ended:\n%s%s", stderr.String(), printed.String())
			case <-p.ended:
				t.Fatalf("the training ended before the reader had read:\n%s", printed.String())
			default:
			}
			return !slices.ContainsFunc(lines, func(line string) bool { return !regexp.MustCompile(line).MatchString(printed.String()) })
		})
	}
	// The library decodes the same events.
	eventually(t, "the example prints figures", func() bool {
		select {
		case <-read:
			return true
		default:
			return false
		}
	})
	if !regexp.MustCompile(`first tokens of an answer: \[\d+(, \d+)*\]\n`).MatchString(tokens.String()) || !strings.Contains(figures.String(), "metrics.entropy") {
		t.Errorf("the example printed\n%s%s", tokens.String(), figures.String())
	}
	p.interrupt(t)
}
