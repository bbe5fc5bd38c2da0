package gpuworker

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codea1/events"
)

var sumProblem = events.Problem{
	ID: "p1", Question: " Return the sum of a list.\n", EntryPoint: "total", Solution: "def total(xs: list[int], *, start=\"(:\") -> int:\n    return sum(xs)\n",
}

// write returns the prompt of a role's template, or of a style if the template is empty.
func write(t testing.TB, role events.Role, style Style, template string, fields PromptFields) string {
	t.Helper()
	prompt, err := (&PromptFlags{PromptStyle: style, CodePrompt: CodeTemplate(template), TestPrompt: TestTemplate(template)}).Prompt(role)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := prompt.Write(fields)
	if err != nil || len(messages) != 1 || messages[0].Role != "user" {
		t.Fatalf("%v, %v; want one user message", messages, err)
	}
	return messages[0].Content
}

// The prompts of both styles stay the same text: another text changes the weights of
// every training.
func TestPromptsOfTheStyles(t *testing.T) {
	for _, c := range []struct {
		role  events.Role
		style Style
		want  string // SHA-256
	}{
		{events.RoleCode, StylePlain, "b450d4e3dc1076a956455ea0f0ffea6439c64d66aefb452fc815acb00ee24af8"},
		{events.RoleTest, StylePlain, "1c320807d47013445b1dfefadb3db02132e0678734b8d11bd830061c67e80015"},
		{events.RoleCode, StylePaper, "e68c525f04b96244ac8c9480d01d1afdc559988732bc82b87c2a874918c8cfcf"},
		{events.RoleTest, StylePaper, "28bbdada159bd90cfb30354da9dfb6182358c17c69138628f2dd2efb95f7d554"},
	} {
		fields := CodeFields(&sumProblem)
		if c.role == events.RoleTest {
			fields = TestFields(&sumProblem, "def total(xs):\n    return 0\n\n", 8, nil)
		}
		got := write(t, c.role, c.style, "", fields)
		if fmt.Sprintf("%x", sha256.Sum256([]byte(got))) != c.want {
			t.Errorf("style %s, role %s:\n%s", c.style, c.role, got)
		}
	}
	if _, err := (&PromptFlags{PromptStyle: "prose"}).Prompt(events.RoleCode); err == nil {
		t.Error("an unknown style is accepted")
	}
}

// The prompt of a predict problem is its question, in every style and with a template of
// the user.
func TestPromptOfAPredictProblem(t *testing.T) {
	p := events.Problem{Question: "Which value?\n", EntryPoint: "f", Solution: "def f(): pass\n", Predict: []events.Prediction{{Kind: events.PredictOutput, Accepted: []string{"7"}}}}
	for _, style := range []Style{StylePlain, StylePaper} {
		for _, template := range []string{"", "Solve {{.Question}}"} {
			if got := write(t, events.RoleCode, style, template, CodeFields(&p)); got != "Which value?" {
				t.Errorf("style %s, template %q: %q", style, template, got)
			}
		}
	}
}

// A template of the user has the fields of its role.
func TestPromptFields(t *testing.T) {
	history := []events.HistoricalTest{{Call: "total([1])", Expected: "1", Count: 3}, {Call: "total([])", Expected: "0", Count: 1}}
	got := write(t, events.RoleTest, "", `{{trim .Question}}|{{.EntryPoint}}|{{.Signature}}|{{.Code}}|{{.Tests}}
{{- range $i, $h := .History}}{{if $i}};{{end}} {{.Call}} == {{$h.Expected}} ({{.Count}}, {{$.EntryPoint}}){{else}} none{{end}}
`, TestFields(&sumProblem, "x = 1\n\n", 4, history))
	want := `Return the sum of a list.|total|def total(xs: list[int], *, start="(:") -> int|x = 1|4 total([1]) == 1 (3, total); total([]) == 0 (1, total)`
	if got != want {
		t.Errorf("have %s\nwant %s", got, want)
	}
	for solution, want := range map[string]string{
		"class A:\n    async def total(\n        self, x={1: (2)},\n    ):\n        def total(): pass\n": "async def total(\n        self, x={1: (2)},\n    )",
		"def total(x): return {x: (1), 2: 3}":       "def total(x)",
		"total = sum":                               "",
		"def total(x, # why\n          y):\n  pass": "",
		"def totals(x): pass":                       "",
		"def total(x":                               "",
	} {
		p := events.Problem{Question: "q", EntryPoint: "A().total", Solution: solution}
		if got := CodeFields(&p).Signature(); got != want {
			t.Errorf("%q: signature %q, want %q", solution, got, want)
		}
	}
}

// A template is refused at once, with its file and line, if it cannot write prompts or
// if it could take any amount of time or memory: it comes with run.started, too.
func TestRefusedTemplates(t *testing.T) {
	for text, want := range map[string]string{
		"\n{{.Question}\n":                                      ":2: ",
		"{{.Question}}\n{{if .Code}}":                           ": unexpected EOF",
		"{{.Question}}\n{{.Golden}}":                            ":2:2: field .Golden does not exist for this role; there are .Question, .EntryPoint",
		"{{.Question}}{{with .EntryPoint}}{{$.History}}{{end}}": "field .History does not exist for this role",
		"no problem {{.EntryPoint}}":                            ":1: no action shows the question",
		"{{.Question}}{{range 9999999999}}{{end}}":              ":1:21: range 9999999999 is not supported",
		"{{.Question}}{{range .Tests}}{{end}}":                  "range .Tests is not supported",
		"{{.Question}}{{printf \"%999999999d\" 1}}":             "function printf is not supported",
		"{{.Question}}{{call .EntryPoint}}":                     "function call is not supported",
		"{{.Question}}{{upper .EntryPoint}}":                    `function "upper" not defined`,
		`{{define "x"}}{{template "x"}}{{end}}{{.Question}}`:    "define and block are not supported",
		`{{.Question}}{{template "code-prompt" .}}`:             "template is not supported",
		"{{.Question}}{{len 3}}":                                "len of type int",
		"{{.Question}}\xff":                                     "bytes of UTF-8",
		"{{.Question}}" + strings.Repeat("x", maxTemplateBytes): "at most 65536 bytes",
	} {
		file := filepath.Join(t.TempDir(), "p.tmpl")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, given := range []string{file, text} {
			var template CodeTemplate
			err := template.UnmarshalText([]byte(given))
			if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "prompt ") || given == file && !strings.Contains(err.Error(), file) {
				t.Errorf("%.60q: %v", given, err)
			}
		}
	}
	for text, want := range map[string]string{
		"{{.Question}}{{range .History}}{{range $.History}}{{end}}{{end}}": "outside of another range",
		"{{.Question}}{{range .History}}{{.Question}}{{end}}":              "can't evaluate field Question",
		"{{.Question}}{{(index .History 0).Call}}":                         "index out of range",
	} {
		var template TestTemplate
		if err := template.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, file := range []string{filepath.Join(t.TempDir(), "none"), t.TempDir()} {
		if err := new(CodeTemplate).UnmarshalText([]byte(file)); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// A prompt that no model could read is not built.
func TestPromptsAreBounded(t *testing.T) {
	prompt, err := (&PromptFlags{CodePrompt: CodeTemplate(strings.Repeat("{{.Question}}", 100))}).Prompt(events.RoleCode)
	if err != nil {
		t.Fatal(err)
	}
	_, err = prompt.Write(PromptFields{Question: strings.Repeat("x", events.MaxTextBytes)})
	if !errors.Is(err, ErrPromptTooLong) {
		t.Error(err)
	}
}

func TestCompletionsHaveDifferentSeeds(t *testing.T) {
	plan := events.Plan{Seed: 1}
	seen := map[uint64]string{}
	for _, group := range []string{"s000001-q0000", "s000001-q0001"} {
		for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
			for answer := range 12 {
				for suite := range 12 {
					seed := SampleSeed(&plan, group, role, answer, suite)
					if seed != SampleSeed(&plan, group, role, answer, suite) {
						t.Fatal("a seed is not a function of its arguments")
					}
					if other, ok := seen[seed]; ok {
						t.Fatalf("%s/%s/%d/%d has the seed of %s", group, role, answer, suite, other)
					}
					seen[seed] = group
				}
			}
		}
	}
	if SampleSeed(&events.Plan{Seed: 2}, "g", events.RoleCode, 0, 0) == SampleSeed(&events.Plan{Seed: 1}, "g", events.RoleCode, 0, 0) {
		t.Error("the plan's seed makes no difference")
	}
}
