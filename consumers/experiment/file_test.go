package experiment

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestMatrix(t *testing.T) {
	m, err := parse("dir/first.yaml", []byte(`
about: Two lines.
seeds: [3, 1]
baseline: sweep-0_5-paper_nobook
settings: { steps: 4, alpha: 0.1, preset: tiny }
arms:
  a:
  sweep: { alpha: [0.5, 1], preset: ["paper,nobook"], steps: 9 }
  static: { tests-of: a, tests-of-step: 3-4 }
evaluate:
  mul: { benchmark: mine.jsonl, role: test, tests: 2 }
`))
	if err != nil {
		t.Fatal(err)
	}
	sweep := func(alpha string) []Setting {
		return []Setting{{Key: "steps", Value: "9"}, {Key: "alpha", Value: alpha}}
	}
	want := &Matrix{
		Name: "first", About: "Two lines.", Baseline: "sweep-0_5-paper_nobook", Seeds: []uint64{3, 1},
		Arms: []Arm{
			{Name: "a", Preset: "tiny", Settings: []Setting{{Key: "steps", Value: "4"}, {Key: "alpha", Value: "0.1"}}},
			{Name: "sweep-0_5-paper_nobook", Preset: "paper,nobook", Settings: sweep("0.5")},
			{Name: "sweep-1-paper_nobook", Preset: "paper,nobook", Settings: sweep("1")},
			{Name: "static", Preset: "tiny", Settings: []Setting{{Key: "steps", Value: "4"}, {Key: "alpha", Value: "0.1"}}, Tests: Tests{Of: "a", Step: "3-4"}},
		},
		Evaluations: []Evaluation{{Name: "mul", Benchmark: "mine.jsonl", Settings: []Setting{{Key: "role", Value: "test"}, {Key: "tests", Value: "2"}}}},
	}
	if diff := cmp.Diff(want, m, cmpopts.IgnoreUnexported(Arm{}, Setting{}, Tests{}, Evaluation{})); diff != "" {
		t.Errorf("-want +have:\n%s", diff)
	}
	if err := m.Arms[2].Settings[1].Wrong(os.ErrInvalid); err.Error() != "dir/first.yaml:8: arms.sweep.alpha: invalid argument" {
		t.Error(err)
	}
}

func TestErrorsNameFileLineAndField(t *testing.T) {
	for text, want := range map[string]string{
		"":                                                      "f.yaml: it is empty",
		"- a":                                                   "f.yaml:1: the file: want `key: value` lines",
		"seeds: [1]":                                            "f.yaml: want the fields seeds and arms",
		"arms: {a: }":                                           "f.yaml: want the fields seeds and arms",
		"seeds: 3\narms: {a: }":                                 "f.yaml:1: seeds: want a list",
		"seeds: [1, x]\narms: {a: }":                            `f.yaml:1: seeds: "x" is no whole number`,
		"seeds:\n- 1\n- -1\narms: {a: }":                        `f.yaml:3: seeds: "-1" is no whole number`,
		"seeds: [1, 1]\narms: {a: }":                            "f.yaml:1: seeds: 1 occurs twice",
		"seeds: [[1]]\narms: {a: }":                             "f.yaml:1: seeds: want one value",
		"seeds: [1]\nseeds: [2]\narms: {a: }":                   "f.yaml:2: the file: seeds is set twice",
		"seeds: [1]\narm: {a: }":                                "f.yaml:2: arm: unknown field; want about, seeds, baseline, settings, arms or evaluate",
		"seeds: [1]\narms:":                                     "f.yaml:2: arms: want at least one",
		"seeds: [1]\narms: [a]":                                 "f.yaml:2: arms: want `key: value` lines",
		"seeds: [1]\narms:\n  a: 3":                             "f.yaml:3: arms.a: want `key: value` lines",
		"seeds: [1]\narms:\n  a/b:":                             "f.yaml:3: arms.a/b: ",
		"seeds: [1]\narms:\n  a: {alpha: }":                     "f.yaml:3: arms.a.alpha: want one value",
		"seeds: [1]\narms:\n  a: {alpha: []}":                   "f.yaml:3: arms.a.alpha: want 1 to 1000 values",
		"seeds: [1]\narms:\n  a: {x: {y: 1}}":                   "f.yaml:3: arms.a.x: want one value",
		"seeds: [1]\narms:\n  a: {x: 1, x: 2}":                  "f.yaml:3: arms.a: x is set twice",
		"seeds: [1]\narms:\n  a-1:\n  a: {x: [1]}":              "f.yaml:4: arms.a: two configurations have the name a-1",
		"seeds: [1]\nsettings: 3\narms: {a: }":                  "f.yaml:2: arms.a: want `key: value` lines",
		"seeds: [1]\nbaseline: b\narms: {a: }":                  `f.yaml:2: baseline: there is no configuration "b"`,
		"seeds: [1]\narms:\n  a: &x {p: 1}\n  b: *x":            "f.yaml:4: arms.b: want `key: value` lines",
		"seeds: [1]\narms:\n  a: {p: &x [1, 2], q: *x}":         "f.yaml:3: arms.a.q: want one value",
		"seeds: [1]\narms:\n  a: {" + lists(12) + "}":           "f.yaml:3: arms.a.k9: want 1 to 1000 values",
		"seeds: [" + strings.Repeat("1,", 3) + "]\narms: {a: }": "f.yaml:1: seeds: 1 occurs twice",
		"seeds: [1, 2]\narms:\n  a: {" + lists(9) + "}":         "f.yaml:3: arms: more than 1000 runs",
		"a: [": "f.yaml: ",
		"seeds: [1]\narms:\n  a: {tests-of: b}\n  b:":                        `f.yaml:3: arms.a.tests-of: there is no configuration "b" above this one`,
		"seeds: [1]\narms:\n  a: {tests-of: a}":                              `f.yaml:3: arms.a.tests-of: there is no configuration "a" above this one`,
		"seeds: [1]\narms:\n  a:\n  b: {tests-of: a}\n  c: {tests-of: b}":    "f.yaml:5: arms.c.tests-of: b has its tests from a: name that one",
		"seeds: [1]\narms:\n  a: {tests-of-step: 3}":                         "f.yaml:3: arms.a.tests-of-step: tests-of-step needs tests-of",
		"seeds: [1]\narms:\n  a:\n  b: {tests-of: a, tests-of-step: last}":   `f.yaml:4: arms.b.tests-of-step: "last" is neither a step nor a range`,
		"seeds: [1]\narms: {a: }\nevaluate: {m: {role: test}}":               "f.yaml:3: evaluate.m: want the field benchmark",
		"seeds: [1]\narms: {a: }\nevaluate: {m: {benchmark: b, seed: 3}}":    "f.yaml:3: evaluate.m.seed: unknown setting; want benchmark, role, ",
		"seeds: [1]\narms: {a: }\nevaluate: {m: {benchmark: b, tests: [1]}}": "f.yaml:3: evaluate.m.tests: want one value",
		"seeds: [1]\narms: {a: }\nevaluate: {m/n: {benchmark: b}}":           "f.yaml:3: evaluate.m/n: ",
		"seeds: [1]\narms: {a: }\nevaluate: [m]":                             "f.yaml:3: evaluate: want `key: value` lines",
		"seeds: [1]\narms: {a: }\n---\nseeds: [2]\n":                         "f.yaml:3: a second document; want one",
		"seeds: [1]\narms: {a: }\n---\n[":                                    "f.yaml: ",
		"seeds: [1]\narms:\n  " + strings.Repeat("a", 300) + ":":             "f.yaml:3: arms.aaa",
		"seeds: [1]\n? [a]\n: 2\narms: {a: }":                                "f.yaml:2: the file: want a name before the colon",
	} {
		m, err := parse("f.yaml", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: have %v, %v; want %s", text, m, err, want)
		}
	}
}

// lists returns settings with two values each.
func lists(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("k" + string(rune('0'+i)) + ": [1, 2], ")
	}
	return b.String()
}

func TestReadFileRefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large.yaml")
	if err := os.WriteFile(large, []byte(strings.Repeat("#", maxFileBytes+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{dir: "is a directory", filepath.Join(dir, "none"): "no such file", large: "more than 1048576 bytes"} {
		if _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: have %v, want %s", path, err, want)
		}
	}
}
