package main

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"testing"

	"codea1/events"
)

// A NATS client with a msgpack reader can watch a training.
func TestTap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, dir, train("--steps", "2", "--name", "r")...)
	seen := map[events.Type]int{}
	p.tap(t, func(_ int, m *events.Message) bool {
		e, err := m.Decode()
		if err != nil {
			t.Fatal(err)
		}
		if e.Run != "r" || e.Source == "" {
			t.Errorf("%s of run %q by %q", e.Type, e.Run, e.Source)
		}
		seen[e.Type]++
		return true
	})
	if code := p.wait(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	// A tap sees the events that are published after it joins. It joins during the
	// first evaluation, before the first training step.
	for typ, want := range map[events.Type]int{events.TypeGroupRewarded: 6, events.TypePolicyUpdated: 4} {
		if seen[typ] != want {
			t.Errorf("%d events %s, want %d", seen[typ], typ, want)
		}
	}
}

// The README shows testdata/tap.py.
func TestTapInPython(t *testing.T) {
	t.Parallel()
	python := os.Getenv("TAP_PYTHON")
	if python == "" {
		python = "python3"
	}
	if out, err := exec.Command(python, "-c", "import msgpack, nats, zstandard").CombinedOutput(); err != nil {
		required(t, "no msgpack, nats and zstandard in "+python+", or in TAP_PYTHON: "+string(out))
	}
	// The run lasts until the reader has read.
	p := start(t, t.TempDir(), train("--steps", "5000", "--name", "r", "--heldout", "")...)
	address, _ := p.address(t)
	tap := exec.Command(python, "testdata/tap.py", address, "r")
	var printed, stderr buffer
	tap.Stdout, tap.Stderr = &printed, &stderr
	if err := tap.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tap.Wait() // it is killed
	}()
	defer func() {
		tap.Process.Kill()
		<-ended
	}()
	// A whole group.rewarded, and the token ids of a compressed code.sampled.
	lines := []*regexp.Regexp{
		regexp.MustCompile(`(?m)^group\.rewarded s\d{6}-q\d{4} \{.*'recipe': 'a1'.*\}$`),
		regexp.MustCompile(`(?m)^code\.sampled s\d{6}-q\d{4} \{.*'entry': 'solve'.*\}\nfirst answer: \[\d+(, \d+)*\]$`),
	}
	eventually(t, "the reader prints events", func() bool {
		select {
		case <-ended:
			t.Fatalf("the reader ended:\n%s%s", stderr.String(), printed.String())
		case <-p.ended:
			t.Fatalf("the training ended before the reader had read:\n%s", printed.String())
		default:
		}
		return !slices.ContainsFunc(lines, func(r *regexp.Regexp) bool { return !r.MatchString(printed.String()) })
	})
	p.signal(t, os.Interrupt)
	if code := p.wait(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
