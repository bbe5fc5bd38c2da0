package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/events/rundir"
	"codea1/events/settings"
	"codea1/gpuworker"
	"codea1/producers/problems"
)

// The embedded models are trained on the corpus of package problems, and package
// gpuworker writes their prompts. The two packages do not import each other, but
// their prompts must be the same text.
func TestCorpusAndRolloutsAskAlike(t *testing.T) {
	plain := func(role events.Role, fields gpuworker.PromptFields) []gpuworker.Message {
		prompt, err := (&gpuworker.PromptFlags{PromptStyle: gpuworker.StylePlain}).Prompt(role)
		if err != nil {
			t.Fatal(err)
		}
		messages, err := prompt.Write(fields)
		if err != nil {
			t.Fatal(err)
		}
		return messages
	}
	corpus := func(p *events.Problem, code string) string {
		text, err := problems.PlainPrompt(p, code)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for i, p := range []events.Problem{
		{ID: "1", Question: "Return xs.", EntryPoint: "solve", Solution: "def solve(xs):\n    return xs"},
		{ID: "2", Question: "Zwei Zeilen:\n  ünïcode ", EntryPoint: "solve", Solution: "def solve(xs):\n    return [\n        1,\n    ]"},
	} {
		want := []gpuworker.Message{{Role: "user", Content: corpus(&p, "")}}
		if diff := cmp.Diff(want, plain(events.RoleCode, gpuworker.CodeFields(&p))); diff != "" {
			t.Errorf("problem %d, Code LLM (-corpus +rollout):\n%s", i, diff)
		}
		want[0].Content = corpus(&p, p.Solution)
		// A program cut out of a fenced block ends with a line feed, one of the
		// corpus does not.
		for _, code := range []string{p.Solution, p.Solution + "\n"} {
			if diff := cmp.Diff(want, plain(events.RoleTest, gpuworker.TestFields(&p, code, 3, nil))); diff != "" {
				t.Errorf("problem %d, Test LLM (-corpus +rollout):\n%s", i, diff)
			}
		}
	}
}

// The corpus, the printed prompt and the recorded settings use the same template.
func TestPromptsFromATemplate(t *testing.T) {
	t.Parallel()
	template := filepath.Join(t.TempDir(), "p.tmpl")
	text := "---\n\tAsk \"me\" for ${HOME} $$5: {{.Question}} \r\n# {{.Signature}} {{.EntryPoint}}{{range $h := .History}}{{$h.Call}}{{end}}  \n\n"
	if err := os.WriteFile(template, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	printed := func(args ...string) string {
		var out, stderr bytes.Buffer
		if code := run(t.Context(), append([]string{"problems"}, args...), &out, &stderr); code != 0 {
			t.Fatalf("%v: %s", args, &stderr)
		}
		return out.String()
	}
	if got := printed("prompt", "--role", "test", "--test-prompt", template); got != text {
		t.Errorf("the template is printed as %q", got)
	}
	if got := printed("prompt", "train-0001", "--role", "test"); !strings.HasSuffix(got, "\n```\n") || !strings.Contains(got, "\n```python\ndef solve(") {
		t.Errorf("the prompt of the Test LLM is %q", got)
	}
	if got := printed("prompt", "train-0001", "--role", "test", "--test-prompt", template); !strings.Contains(got, " \r\n# def solve(xs) solve  \n") {
		t.Errorf("the prompt of the Test LLM is %q", got)
	}
	var row problems.Row
	if err := json.Unmarshal([]byte(printed("corpus", "--role", "test", "--rows", "1", "--test-prompt", template)), &row); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(row.Prompt, "---\n\tAsk \"me\" for ${HOME} $$5: ") || !strings.HasSuffix(row.Prompt, " \r\n# def solve(xs) solve  \n") {
		t.Errorf("a row of the corpus asks %q", row.Prompt)
	}

	// The text belongs to the run: a resume and a stage need no file.
	s := &mustParse(t, "--test-prompt", template).Settings
	if err := os.Remove(template); err != nil {
		t.Fatal(err)
	}
	config, err := configText(s, &s.Bus)
	if err != nil {
		t.Fatal(err)
	}
	began, err := startedSettings(config)
	if err != nil {
		t.Fatal(err)
	}
	var now RunSettings
	if err := settings.Resolve(&now, &began.RunSettings, envPrefix); err != nil {
		t.Fatal(err)
	}
	if got := string(now.Sampling.TestPrompt); got != text {
		t.Errorf("a stage has the template %q", got)
	}
	runDir := filepath.Join(t.TempDir(), "r")
	if err := errors.Join(os.MkdirAll(runDir, 0o700), os.WriteFile(rundir.Config(runDir), []byte(config), 0o600)); err != nil {
		t.Fatal(err)
	}
	resumed, err := parse("--resume", runDir)
	if err != nil || string(resumed.Sampling.TestPrompt) != text {
		t.Fatalf("a resumed run has the template %q, %v", resumed.Sampling.TestPrompt, err)
	}
	_, err = parse("--resume", runDir, "--test-prompt", "{{.Question}}\n\n")
	if err == nil || !strings.Contains(err.Error(), "--test-prompt is a text of 15 bytes with the SHA-256 ") || !strings.Contains(err.Error(), "which cannot change") {
		t.Errorf("a resume with another template: %v", err)
	}
}
