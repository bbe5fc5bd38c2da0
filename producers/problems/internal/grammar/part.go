package grammar

import (
	"math/rand/v2"
	"strconv"
	"strings"
)

// part is one choice of a slot: how the question says it and how the code does
// it. "{k}" stands for a constant in both.
type part struct {
	name string
	say  []string // alternative wordings
	code string
	ks   []int // values "{k}" takes
}

// use is a part with its constant fixed.
type use struct {
	part
	k int
}

// none is the empty choice of an optional slot.
var none = use{}

func (u use) empty() bool { return u.name == "" }

func (u use) words() []string {
	words := make([]string, len(u.say))
	for i, say := range u.say {
		words[i] = strings.ReplaceAll(say, "{k}", strconv.Itoa(u.k))
	}
	return words
}

func (u use) source() string { return strings.ReplaceAll(u.code, "{k}", strconv.Itoa(u.k)) }

// pick chooses one of the parts and its constant.
func pick(r *rand.Rand, parts []part) use {
	chosen := use{part: parts[r.IntN(len(parts))]}
	if len(chosen.ks) > 0 {
		chosen.k = chosen.ks[r.IntN(len(chosen.ks))]
	}
	return chosen
}

// maybe picks a part with the given probability.
func maybe(r *rand.Rand, probability float64, parts []part) use {
	if r.Float64() >= probability {
		return none
	}
	return pick(r, parts)
}

// Phrase is a question whose wording is still open: alternatives for each of
// its pieces, in order.
type Phrase [][]string

// Say joins one alternative of each piece, chosen by choose(number of
// alternatives), into a sentence.
func (p Phrase) Say(choose func(n int) int) string {
	var b strings.Builder
	for _, alternatives := range p {
		piece := alternatives[0]
		if len(alternatives) > 1 {
			piece = alternatives[choose(len(alternatives))]
		}
		if piece == "" {
			continue
		}
		if b.Len() > 0 && piece[0] != ',' {
			b.WriteByte(' ')
		}
		b.WriteString(piece)
	}
	b.WriteByte('.')
	return b.String()
}

// say builds a phrase from fixed strings, alternatives and uses.
func say(pieces ...any) Phrase {
	var phrase Phrase
	for _, piece := range pieces {
		switch piece := piece.(type) {
		case string:
			phrase = append(phrase, []string{piece})
		case []string:
			phrase = append(phrase, piece)
		case Phrase:
			phrase = append(phrase, piece...)
		case use:
			if !piece.empty() {
				phrase = append(phrase, piece.words())
			}
		}
	}
	return phrase
}

// draft is a problem as drawn, before anyone has looked at its behaviour.
type draft struct {
	family string
	uses   []use
	domain *Domain
	say    Phrase
	body   string // statements at one level of indentation
}

func (d draft) source() string {
	return "def solve(" + strings.Join(d.domain.Params, ", ") + "):\n    " + strings.ReplaceAll(d.body, "\n", "\n    ")
}

// parts names the parts used, without their constants, qualified by the family.
func (d draft) parts() []string {
	names := make([]string, 0, len(d.uses))
	for _, u := range d.uses {
		if !u.empty() {
			names = append(names, d.family+"."+u.name)
		}
	}
	return names
}

// skeleton names the composition, without its constants.
func (d draft) skeleton() string {
	names := make([]string, len(d.uses))
	for i, u := range d.uses {
		names[i] = u.name
	}
	return d.family + "(" + strings.Join(names, ",") + ")"
}

// conjunction joins the conditions of the non-empty uses.
func conjunction(uses ...use) string {
	var conditions []string
	for _, u := range uses {
		if !u.empty() && u.code != "" {
			conditions = append(conditions, u.source())
		}
	}
	return strings.Join(conditions, " and ")
}

// loop writes "element for item in iterable if condition".
func loop(element, item, iterable, condition string) string {
	text := element + " for " + item + " in " + iterable
	if condition != "" {
		text += " if " + condition
	}
	return text
}

func span(low, high int) []int {
	var values []int
	for k := low; k <= high; k++ {
		values = append(values, k)
	}
	return values
}
