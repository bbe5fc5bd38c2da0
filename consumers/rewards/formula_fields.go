package rewards

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// formulaField is one field of a Formula as text: a key of a recipe file, and
// a part of the recipe's name.
type formulaField struct {
	name  string
	get   func(*Formula) string
	set   func(*Formula, string) error
	check func(*Formula) error
}

const (
	fieldGoldenShare = "golden"
	fieldDifficulty  = "difficulty"
)

// maxWeight bounds a weight: rewards stay far from what a float64 loses.
const maxWeight = 1e6

// maxBands bounds a formula's difficulty bands, and so its name.
const maxBands = 16

// formulaFields are in the order of RECIPE.md.
var formulaFields = []formulaField{
	number("validity", maxWeight, func(f *Formula) *float64 { return &f.Validity }),
	number("adversarial", maxWeight, func(f *Formula) *float64 { return &f.Adversarial }),
	number("unprintable", maxWeight, func(f *Formula) *float64 { return &f.Unprintable }),
	whole("wanted", 1024, func(f *Formula) *int { return &f.Wanted }),
	boolean("against_history", func(f *Formula) *bool { return &f.AgainstHistory }),
	number("history", 1, func(f *Formula) *float64 { return &f.HistoryShare }),
	number(fieldGoldenShare, 1, func(f *Formula) *float64 { return &f.GoldenShare }),
	word("advantage", func(f *Formula) *Advantage { return &f.GroupRules.Advantage }, AdvantageStd, AdvantageMean),
	word("compare", func(f *Formula) *Comparison { return &f.GroupRules.Compare }, CompareAnswer, CompareQuestion),
	word("choose", func(f *Formula) *Choice { return &f.GroupRules.Choose }, ChooseMaxStd, ChooseMaxMean, ChooseNone),
	boolean("remember", func(f *Formula) *bool { return &f.GroupRules.Remember }),
	boolean("forget", func(f *Formula) *bool { return &f.GroupRules.Forget }),
	bands(fieldDifficulty, func(f *Formula) *[]Band { return &f.GroupRules.Bands }),
}

func fieldNamed(name string) *formulaField {
	for i := range formulaFields {
		if formulaFields[i].name == name {
			return &formulaFields[i]
		}
	}
	return nil
}

// fieldNames lists the fields for an error.
func fieldNames() string {
	names := make([]string, len(formulaFields))
	for i := range formulaFields {
		names[i] = formulaFields[i].name
	}
	return strings.Join(names, ", ")
}

func badField(name, format string, args ...any) error {
	return fmt.Errorf("%w: %s %s", ErrFormula, name, fmt.Sprintf(format, args...))
}

func number(name string, most float64, of func(*Formula) *float64) formulaField {
	return formulaField{
		name: name,
		get:  func(f *Formula) string { return strconv.FormatFloat(*of(f), 'g', -1, 64) },
		set: func(f *Formula, text string) (err error) {
			if *of(f), err = strconv.ParseFloat(text, 64); err != nil {
				return badField(name, "is %q; want a number", text)
			}
			return nil
		},
		check: func(f *Formula) error {
			if v := *of(f); math.IsNaN(v) || v < 0 || v > most {
				return badField(name, "is %v; want 0 to %v", v, most)
			}
			return nil
		},
	}
}

func whole(name string, most int, of func(*Formula) *int) formulaField {
	return formulaField{
		name: name,
		get:  func(f *Formula) string { return strconv.Itoa(*of(f)) },
		set: func(f *Formula, text string) (err error) {
			if *of(f), err = strconv.Atoi(text); err != nil {
				return badField(name, "is %q; want a whole number", text)
			}
			return nil
		},
		check: func(f *Formula) error {
			if v := *of(f); v < 0 || v > most {
				return badField(name, "is %d; want 0 to %d", v, most)
			}
			return nil
		},
	}
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
		check: func(*Formula) error { return nil },
	}
}

func word[T ~string](name string, of func(*Formula) *T, words ...T) formulaField {
	check := func(f *Formula) error {
		if !slices.Contains(words, *of(f)) {
			return badField(name, "is %q; want one of %v", *of(f), words)
		}
		return nil
	}
	return formulaField{
		name: name,
		get:  func(f *Formula) string { return string(*of(f)) },
		set: func(f *Formula, text string) error {
			*of(f) = T(text)
			return check(f)
		},
		check: check,
	}
}

// bands are written up_to:weight, joined by |.
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
			var out []Band
			for part := range strings.SplitSeq(text, "|") {
				upTo, weight, _ := strings.Cut(part, ":")
				x, errX := strconv.ParseFloat(upTo, 64)
				y, errY := strconv.ParseFloat(weight, 64)
				if errX != nil || errY != nil {
					return badField(name, "has the band %q; want UP_TO:WEIGHT", part)
				}
				out = append(out, Band{x, y})
			}
			*of(f) = out
			return nil
		},
		check: func(f *Formula) error {
			if n := len(*of(f)); n > maxBands {
				return badField(name, "has %d bands; want %d at most", n, maxBands)
			}
			last := -1.0
			for _, b := range *of(f) {
				switch {
				case !(b.UpTo >= 0 && b.UpTo <= 1):
					return badField(name, "has a band up to %v; want 0 to 1", b.UpTo)
				case b.UpTo <= last:
					return badField(name, "has a band up to %v after one up to %v; want them rising", b.UpTo, last)
				case !(b.Weight >= 0 && b.Weight <= maxWeight):
					return badField(name, "has the weight %v; want 0 to %v", b.Weight, maxWeight)
				}
				last = b.UpTo
			}
			return nil
		},
	}
}
