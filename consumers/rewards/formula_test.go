package rewards

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"codea1/events"
)

// The formula with the weights of the paper is A1, bit by bit, and the terms are
// those of the paper.
func TestFormulaOfThePaperIsA1(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGroup(t)
		alpha := rapid.SampledFrom([]float64{0, 0.25, 0.5, 0.75, 1}).Draw(t, "alpha")
		f := PaperFormula()
		f.Validity, f.Adversarial = alpha, 1-alpha
		want := score(t, g, A1(alpha))
		got, err := Score(f, g)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(events.GroupRewarded{}, "Recipe", "Alpha")); diff != "" {
			t.Fatal(diff)
		}
		for m, answer := range got.Code {
			for n, suite := range got.Test[m] {
				if !answer.Loads || suite.Masked {
					continue
				}
				if want := alpha*suite.RVal + (1-alpha)*suite.RAdv - suite.Penalty; suite.Reward != want {
					t.Fatalf("answer %d, suite %d: reward %v, want %v of its terms", m, n, suite.Reward, want)
				}
				if len(g.Historical) == 0 || suite.Valid == 0 {
					continue
				}
				if pass, adv := (suite.PassHist+suite.PassNew)/2, (suite.FailNew-suite.FailHist+1)/2; suite.Pass != pass || suite.RAdv != adv {
					t.Fatalf("answer %d, suite %d: pass %v and R_adv %v, want %v and %v", m, n, suite.Pass, suite.RAdv, pass, adv)
				}
			}
		}
	})
}

func drawFormula(t *rapid.T) Formula {
	f := PaperFormula()
	weight := rapid.Float64Range(0, 10)
	f.Validity, f.Adversarial, f.Unprintable = weight.Draw(t, "validity"), weight.Draw(t, "adversarial"), weight.Draw(t, "unprintable")
	f.Wanted = rapid.IntRange(0, 9).Draw(t, "wanted")
	f.AgainstHistorical = rapid.Bool().Draw(t, "against historical")
	f.HistoricalShare = rapid.Float64Range(0, 1).Draw(t, "historical")
	f.GroupRules.Advantage = rapid.SampledFrom([]Advantage{AdvantageStd, AdvantageMean}).Draw(t, "advantage")
	f.GroupRules.Compare = rapid.SampledFrom([]Comparison{CompareAnswer, CompareGroup}).Draw(t, "compare")
	f.GroupRules.Choose = rapid.SampledFrom([]Choice{ChooseMaxStd, ChooseMaxMean, ChooseNone}).Draw(t, "choose")
	f.GroupRules.Remember, f.GroupRules.Forget = rapid.Bool().Draw(t, "remember"), rapid.Bool().Draw(t, "forget")
	upTo := 0.0
	for range rapid.IntRange(0, 3).Draw(t, "bands") {
		upTo += rapid.Float64Range(0.01, 0.3).Draw(t, "up to")
		f.GroupRules.Bands = append(f.GroupRules.Bands, Band{upTo, weight.Draw(t, "weight")})
	}
	return f
}

// The name of a formula, which a log records, is enough to compute its rewards again.
func TestFormulaIsItsName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFormula(t)
		again, err := New(f.Name(), DefaultAlpha)
		if err != nil {
			t.Fatalf("%s: %v", f.Name(), err)
		}
		if diff := cmp.Diff(f, again); diff != "" {
			t.Fatalf("%s:\n%s", f.Name(), diff)
		}
		g := drawGroup(t)
		got, err := Score(f, g)
		if errors.Is(err, ErrAllMasked) {
			t.Skip("everything is masked")
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := got.Validate(); err != nil {
			t.Fatalf("%s makes rewards that are not valid: %v", f.Name(), err)
		}
	})
	if got := PaperFormula().Name(); got != "formula()" {
		t.Errorf("the name of the paper's formula is %s", got)
	}
	for _, name := range []string{"formula(", "formula(alpha=1)", "formula(validity)", "formula(validity=-1)", "formula(,)"} {
		if _, err := New(name, DefaultAlpha); !errors.Is(err, ErrFormula) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParseFormula(t *testing.T) {
	doc, err := os.ReadFile("RECIPE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(doc), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	got, err := ParseFormula("example.yaml", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	want := PaperFormula()
	want.Validity, want.Adversarial, want.GroupRules.Advantage = 0.25, 0.75, AdvantageMean
	want.GroupRules.Bands = []Band{{0.25, 2}, {0.75, 1}, {1, 0.5}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if name := got.Name(); !strings.Contains(string(doc), "\n    "+name+"\n") {
		t.Errorf("RECIPE.md does not name its example %s", name)
	}
	for _, field := range formulaFields {
		paper := PaperFormula()
		row := regexp.MustCompile("(?m)^\\| `" + field.name + "` \\| " + regexp.QuoteMeta(field.get(&paper)) + " *\\|")
		if !row.Match(doc) {
			t.Errorf("RECIPE.md lacks %s with its default %q", field.name, field.get(&paper))
		}
	}
	if got, err := ParseFormula("empty.yaml", []byte("# nothing\n")); err != nil || !cmp.Equal(got, PaperFormula()) {
		t.Errorf("an empty file: %+v, %v", got, err)
	}
}

func TestParseFormulaNamesFileAndLine(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"alpha: 0.5", "recipe r.yaml:1: not a reward formula: alpha is no field; the fields are validity, adversarial,"},
		{"validity: 1\n---\nvalidity: 2", "recipe r.yaml:2: not a reward formula: a second document; want one"},
		{"validity: 1\n---\n[", "recipe r.yaml: not a reward formula: yaml:"},
		{"\nvalidity: lots", `recipe r.yaml:2: not a reward formula: validity is "lots"; want a number`},
		{"validity: 1\nhistorical: 1.5", "recipe r.yaml:2: not a reward formula: historical is 1.5; want 0 to 1"},
		{"validity: .nan", "recipe r.yaml:1: not a reward formula: validity is"},
		{"wanted: 1.5", `recipe r.yaml:1: not a reward formula: wanted is "1.5"; want a whole number`},
		{"wanted: -1", "recipe r.yaml:1: not a reward formula: wanted is -1; want 0 to 1024"},
		{"remember: maybe", `recipe r.yaml:1: not a reward formula: remember is "maybe"; want true or false`},
		{"choose: best", `recipe r.yaml:1: not a reward formula: choose is "best"; want one of [max_std max_mean none]`},
		{"choose: [max_std]", "recipe r.yaml:1: not a reward formula: choose wants one value"},
		{"golden: 0\ngolden: 1", "recipe r.yaml:2: not a reward formula: golden is set twice"},
		{"difficulty: 1", "recipe r.yaml:1: not a reward formula: difficulty wants a list of bands"},
		{"difficulty:\n  - up_to: 0.5", "recipe r.yaml:2: not a reward formula: difficulty has a band without up_to and weight"},
		{"difficulty:\n  - {up_to: 0.5, weight: 1}\n  - {up_to: 0.5, weight: 2}", "recipe r.yaml:2: not a reward formula: difficulty has a band up to 0.5 after one up to 0.5; want rising bands"},
		{"difficulty:\n  - {up_to: 2, weight: 1}", "recipe r.yaml:2: not a reward formula: difficulty has a band up to 2; want 0 to 1"},
		{"difficulty:\n  - {to: 2, weight: 1}", `recipe r.yaml:2: not a reward formula: difficulty has a band with "to"`},
		{"- validity", "recipe r.yaml:1: not a reward formula: want `field: value` lines"},
		{"a: [", "recipe r.yaml: not a reward formula: "},
		{strings.Repeat("#", maxRecipeBytes+1), "recipe r.yaml: not a reward formula: over the limit of 65536 bytes"},
	} {
		_, err := ParseFormula("r.yaml", []byte(tt.text))
		if !errors.Is(err, ErrFormula) || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%.40q: have %v\nwant %s", tt.text, err, tt.want)
		}
	}
}

// A name that is no regular file, or one without an end, neither blocks nor fills the memory.
func TestLoadRefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		syscall.Mkfifo(at("pipe.yaml"), 0o600), os.Mkdir(at("folder.yaml"), 0o700), os.Symlink("/dev/zero", at("device.yml")),
		os.WriteFile(at("large.yml"), nil, 0o600), os.Truncate(at("large.yml"), 1<<40), // sparse
	); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"pipe.yaml": "a named pipe", "folder.yaml": "a directory", "device.yml": "a device", "large.yml": "over the limit", "none.yml": "no such file"} {
		if _, err := Load(at(name), DefaultAlpha); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// Each recipe of a list has its own curve, so it occurs once.
func TestLists(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "a1": "", "golden,a1": "", "a1,golden,a1": "a1 occurs twice", "a1, golden": "unknown reward recipe", "a1,": "unknown reward recipe", ",,,,,,,,": "9 recipes",
	} {
		var l List
		if err := l.UnmarshalText([]byte(text)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func FuzzParseFormula(f *testing.F) {
	f.Add("validity: 0.25\ndifficulty:\n  - {up_to: 0.5, weight: 2}\n")
	f.Fuzz(func(t *testing.T, text string) {
		formula, err := ParseFormula("r.yaml", []byte(text))
		if err != nil {
			return
		}
		if _, err := New(formula.Name(), DefaultAlpha); err != nil {
			t.Fatalf("%s: %v", formula.Name(), err)
		}
	})
}
