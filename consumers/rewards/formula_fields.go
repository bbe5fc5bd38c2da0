package rewards

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// formulaField is one field of a Formula as text: a key of a recipe file, and
// a part of the formula's name.
type formulaField struct {
	name string
	get  func(*Formula) string
	set  func(*Formula, string) error // refuses a value outside the bounds
}

const (
	fieldGoldenShare = "golden"
	fieldDifficulty  = "difficulty"
)

// maxWeight bounds a weight, so that rewards keep the precision of a float64.
const maxWeight = 1e6

// maxWanted bounds the tests wanted of a suite.
const maxWanted = 1024

// maxBands bounds the difficulty bands of a formula and thereby its name.
const maxBands = 16

// formulaFields are in the order of RECIPE.md.
var formulaFields = []formulaField{
	number("validity", maxWeight, func(f *Formula) *float64 { return &f.Validity }),
	number("adversarial", maxWeight, func(f *Formula) *float64 { return &f.Adversarial }),
	number("unprintable", maxWeight, func(f *Formula) *float64 { return &f.Unprintable }),
	whole("wanted", maxWanted, func(f *Formula) *int { return &f.Wanted }),
	boolean("against_historical", func(f *Formula) *bool { return &f.AgainstHistorical }),
	number("historical", 1, func(f *Formula) *float64 { return &f.HistoricalShare }),
	number(fieldGoldenShare, 1, func(f *Formula) *float64 { return &f.GoldenShare }),
	word("advantage", func(f *Formula) *Advantage { return &f.GroupRules.Advantage }, AdvantageStd, AdvantageMean, AdvantagePopulation),
	word("compare", func(f *Formula) *Comparison { return &f.GroupRules.Compare }, CompareAnswer, CompareGroup),
	word("choose", func(f *Formula) *Choice { return &f.GroupRules.Choose }, ChooseMaxStd, ChooseMaxMean, ChooseNone),
	boolean("remember", func(f *Formula) *bool { return &f.GroupRules.Remember }),
	boolean("forget", func(f *Formula) *bool { return &f.GroupRules.Forget }),
	bands(fieldDifficulty, func(f *Formula) *[]Band { return &f.GroupRules.Bands }),
}

// A formula's name is formula(FIELD=VALUE,...) with the fields that differ from
// PaperFormula's, in the order of formulaFields. group.rewarded records it as
// the recipe, so it must hold the whole formula.
const (
	formulaBegin = "formula("
	formulaEnd   = ")"
)

func isFormula(name string) bool { return strings.HasPrefix(name, formulaBegin) }

func (f *Formula) fields() string {
	paper := PaperFormula()
	var parts []string
	for _, field := range formulaFields {
		if v := field.get(f); v != field.get(&paper) {
			parts = append(parts, field.name+"="+v)
		}
	}
	return formulaBegin + strings.Join(parts, ",") + formulaEnd
}

// formulaNamed returns the formula of a name.
func formulaNamed(name string) (Formula, error) {
	fields, ok := strings.CutSuffix(strings.TrimPrefix(name, formulaBegin), formulaEnd)
	if !ok {
		return Formula{}, badField(name, "lacks its closing %s", formulaEnd)
	}
	f := PaperFormula()
	if fields == "" {
		return f, nil
	}
	for part := range strings.SplitSeq(fields, ",") {
		key, value, _ := strings.Cut(part, "=")
		field, err := fieldNamed(key)
		if err == nil {
			err = field.set(&f, value)
		}
		if err != nil {
			return Formula{}, err
		}
	}
	return f, nil
}

func fieldNamed(name string) (formulaField, error) {
	names := make([]string, len(formulaFields))
	for i, field := range formulaFields {
		if field.name == name {
			return field, nil
		}
		names[i] = field.name
	}
	return formulaField{}, badField(name, "is no field; the fields are %s", strings.Join(names, ", "))
}

func badField(name, format string, args ...any) error {
	return fmt.Errorf("%w: %s %s", ErrFormula, name, fmt.Sprintf(format, args...))
}

func number(name string, most float64, of func(*Formula) *float64) formulaField {
	return formulaField{
		name: name,
		get:  func(f *Formula) string { return strconv.FormatFloat(*of(f), 'g', -1, 64) },
		set: func(f *Formula, text string) error {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return badField(name, "is %q; want a number", text)
			}
			*of(f) = v
			return bounded(name, v, most)
		},
	}
}

func whole(name string, most int, of func(*Formula) *int) formulaField {
	return formulaField{
		name: name,
		get:  func(f *Formula) string { return strconv.Itoa(*of(f)) },
		set: func(f *Formula, text string) error {
			v, err := strconv.Atoi(text)
			if err != nil {
				return badField(name, "is %q; want a whole number", text)
			}
			*of(f) = v
			return bounded(name, float64(v), float64(most))
		},
	}
}

func bounded(name string, v, most float64) error {
	if math.IsNaN(v) || v < 0 || v > most {
		return badField(name, "is %v; want 0 to %v", v, most)
	}
	return nil
}

func boolean(name string, of func(*Formula) *bool) formulaField {
	return formulaField{
		name: name,
		get:  func(f *Formula) string { return strconv.FormatBool(*of(f)) },
		set: func(f *Formula, text string) error {
			if text != "true" && text != "false" {
				return badField(name, "is %q; want true or false", text)
			}
			*of(f) = text == "true"
			return nil
		},
	}
}

func word[T ~string](name string, of func(*Formula) *T, words ...T) formulaField {
	return formulaField{
		name: name,
		get:  func(f *Formula) string { return string(*of(f)) },
		set: func(f *Formula, text string) error {
			if !slices.Contains(words, T(text)) {
				return badField(name, "is %q; want one of %v", text, words)
			}
			*of(f) = T(text)
			return nil
		},
	}
}

// bands are written as up_to:weight, joined by |.
func bands(name string, of func(*Formula) *[]Band) formulaField {
	return formulaField{
		name: name,
		get: func(f *Formula) string {
			var parts []string
			for _, b := range *of(f) {
				parts = append(parts, fmt.Sprintf("%v:%v", b.UpTo, b.Weight))
			}
			return strings.Join(parts, "|")
		},
		set: func(f *Formula, text string) error {
			parts := strings.Split(text, "|")
			if len(parts) > maxBands {
				return badField(name, "has %d bands; want %d at most", len(parts), maxBands)
			}
			var out []Band
			last := -1.0
			for _, part := range parts {
				upTo, weight, _ := strings.Cut(part, ":")
				b := Band{}
				var errUpTo, errWeight error
				b.UpTo, errUpTo = strconv.ParseFloat(upTo, 64)
				b.Weight, errWeight = strconv.ParseFloat(weight, 64)
				switch {
				case errUpTo != nil || errWeight != nil:
					return badField(name, "has the band %q; want UP_TO:WEIGHT", part)
				case !(b.UpTo >= 0 && b.UpTo <= 1):
					return badField(name, "has a band up to %v; want 0 to 1", b.UpTo)
				case b.UpTo <= last:
					return badField(name, "has a band up to %v after one up to %v; want rising bands", b.UpTo, last)
				case !(b.Weight >= 0 && b.Weight <= maxWeight):
					return badField(name, "has the weight %v; want 0 to %v", b.Weight, maxWeight)
				}
				last = b.UpTo
				out = append(out, b)
			}
			*of(f) = out
			return nil
		},
	}
}
