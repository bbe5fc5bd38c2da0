package grammar

import (
	"math/rand/v2"
	"strings"
)

var (
	// kinds are plural nouns for characters.
	kinds = []part{
		{name: "vowels", say: []string{"vowels"}, code: "c in 'aeiouAEIOU'"},
		{name: "uppercase", say: []string{"uppercase letters"}, code: "c.isupper()"},
		{name: "lowercase", say: []string{"lowercase letters"}, code: "c.islower()"},
		{name: "digits", say: []string{"digits"}, code: "c.isdigit()"},
		{name: "letters", say: []string{"letters"}, code: "c.isalpha()"},
		{name: "non_vowels", say: []string{"characters other than vowels", "non-vowels"}, code: "c not in 'aeiouAEIOU'"},
		{name: "non_digits", say: []string{"characters other than digits", "non-digits"}, code: "not c.isdigit()"},
		{name: "non_letters", say: []string{"characters other than letters", "non-letters"}, code: "not c.isalpha()"},
		{name: "non_spaces", say: []string{"characters other than spaces", "non-spaces"}, code: "c != ' '"},
	}
	allCharacters = part{name: "characters", say: []string{"characters"}}

	textSources = []part{
		{name: "s", say: []string{"of s"}, code: "s"},
		{name: "first", say: []string{"among the first {k} of s"}, code: "s[:{k}]", ks: span(2, 4)},
		{name: "last", say: []string{"among the last {k} of s"}, code: "s[-{k}:]", ks: span(2, 4)},
		{name: "even_index", say: []string{"at even indexes of s"}, code: "s[::2]"},
		{name: "odd_index", say: []string{"at odd indexes of s"}, code: "s[1::2]"},
	}
	characterMaps = []part{
		{name: "upper", say: []string{", in uppercase", ", uppercased"}, code: "c.upper()"},
		{name: "lower", say: []string{", in lowercase", ", lowercased"}, code: "c.lower()"},
		{name: "swap", say: []string{", with case swapped"}, code: "c.swapcase()"},
		{name: "repeat", say: []string{", each {k} times"}, code: "c * {k}", ks: span(2, 4)},
		{name: "dash", say: []string{", each followed by '-'"}, code: "c + '-'"},
		{name: "star", say: []string{", each after a '*'"}, code: "'*' + c"},
	}
	textReducers = []part{
		{name: "joined", code: "''.join(G)"},
		{name: "reversed", say: []string{", reversed", ", in reverse order"}, code: "''.join(G)[::-1]"},
		{name: "sorted", say: []string{", sorted"}, code: "''.join(sorted(G))"},
		{name: "unique", say: []string{", sorted without duplicates"}, code: "''.join(sorted(set(G)))"},
		{name: "listed", say: []string{", as a list"}, code: "L"},
		{name: "cut", say: []string{", cut to {k} characters"}, code: "''.join(G)[:{k}]", ks: span(2, 4)},
	}
	textCounts = []part{
		{name: "count", say: []string{"the number of", "the count of"}, code: "len(L)"},
		{name: "distinct", say: []string{"the number of different"}, code: "len(set(G))"},
	}
)

// drawSpelled collects characters of a kind.
func drawSpelled(r *rand.Rand) draft {
	from, kind := pick(r, textSources[:1]), pick(r, kinds)
	if r.IntN(3) == 0 {
		from = pick(r, textSources[1:])
	}
	if r.IntN(6) == 0 {
		kind = pick(r, []part{allCharacters})
	}
	if r.IntN(5) == 0 {
		reducer := pick(r, textCounts)
		return spelled(from, kind, none, reducer, say(returns, reducer, kind, from))
	}
	mapping, reducer := maybe(r, 0.6, characterMaps), pick(r, textReducers)
	if kind.code == "" && mapping.empty() && reducer.name == "joined" {
		mapping = pick(r, characterMaps) // the characters of s are s
	}
	phrase := say(returns, "the", kind, from, mapping)
	if len(reducer.say) > 0 {
		phrase = append(phrase, reducer.words())
	}
	return spelled(from, kind, mapping, reducer, phrase)
}

func spelled(from, kind, mapping, reducer use, phrase Phrase) draft {
	element := "c"
	if !mapping.empty() {
		element = mapping.source()
	}
	generator := loop(element, "c", from.source(), conjunction(kind))
	return draft{
		family: "spelled",
		uses:   []use{from, kind, mapping, reducer},
		domain: Text,
		say:    phrase,
		body:   "return " + expand(reducer.source(), generator, "("+generator+")", "["+generator+"]"),
	}
}

var (
	// singularKinds complete "every ..." and "is ...".
	singularKinds = []part{
		{name: "vowels", say: []string{"vowel"}, code: "c in 'aeiouAEIOU'"},
		{name: "uppercase", say: []string{"uppercase letter"}, code: "c.isupper()"},
		{name: "lowercase", say: []string{"lowercase letter"}, code: "c.islower()"},
		{name: "digits", say: []string{"digit"}, code: "c.isdigit()"},
		{name: "letters", say: []string{"letter"}, code: "c.isalpha()"},
		{name: "non_vowels", say: []string{"non-vowel"}, code: "c not in 'aeiouAEIOU'"},
		{name: "non_digits", say: []string{"non-digit"}, code: "not c.isdigit()"},
		{name: "non_letters", say: []string{"non-letter"}, code: "not c.isalpha()"},
		{name: "spaces", say: []string{"space"}, code: "c == ' '"},
	}
	characterChanges = []part{
		{name: "star", say: []string{"replaced by '*'"}, code: "'*'"},
		{name: "dash", say: []string{"replaced by '-'"}, code: "'-'"},
		{name: "upper", say: []string{"uppercased"}, code: "c.upper()"},
		{name: "lower", say: []string{"lowercased"}, code: "c.lower()"},
		{name: "swap", say: []string{"swapped in case"}, code: "c.swapcase()"},
		{name: "repeat", say: []string{"written {k} times"}, code: "c * {k}", ks: span(2, 4)},
		{name: "marked", say: []string{"followed by '!'"}, code: "c + '!'"},
	}
	textEndings = []part{
		{name: "reversed", say: []string{", and reversed"}, code: "[::-1]"},
		{name: "cut", say: []string{", cut to {k} characters"}, code: "[:{k}]", ks: span(2, 4)},
	}
)

// drawRewritten changes the characters of a kind and keeps the others.
func drawRewritten(r *rand.Rand) draft {
	kind, change, ending := pick(r, singularKinds), pick(r, characterChanges), maybe(r, 0.4, textEndings)
	return draft{
		family: "rewritten",
		uses:   []use{kind, change, ending},
		domain: Text,
		say:    say("Return s with every", kind, change, ending),
		body:   "return ''.join(" + change.source() + " if " + kind.code + " else c for c in s)" + ending.source(),
	}
}

// drawScreened asks whether every, some or no character is of a kind.
func drawScreened(r *rand.Rand) draft {
	from, quantifier, kind := pick(r, textSources), pick(r, quantifiers), pick(r, singularKinds)
	return draft{
		family: "screened",
		uses:   []use{from, quantifier, kind},
		domain: Text,
		say:    say(asks, quantifier, "character", from, "is "+article(kind.say[0]), kind),
		body:   "return " + quantifier.code + loop(kind.code, "c", from.source(), "") + ")",
	}
}

func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an"
	}
	return "a"
}

var (
	wordClauses = []part{
		{name: "longer", say: []string{"longer than {k}"}, code: "len(w) > {k}", ks: span(1, 4)},
		{name: "shorter", say: []string{"shorter than {k}"}, code: "len(w) < {k}", ks: span(2, 5)},
		{name: "length", say: []string{"of length {k}"}, code: "len(w) == {k}", ks: span(1, 4)},
		{name: "vowel_start", say: []string{"starting with a vowel"}, code: "w[0] in 'aeiouAEIOU'"},
		{name: "vowel_end", say: []string{"ending with a vowel"}, code: "w[-1] in 'aeiouAEIOU'"},
		{name: "capital", say: []string{"starting in uppercase"}, code: "w[0].isupper()"},
		{name: "contains_a", say: []string{"containing 'a'"}, code: "'a' in w"},
		{name: "contains_e", say: []string{"containing 'e'"}, code: "'e' in w"},
		{name: "without_e", say: []string{"without 'e'"}, code: "'e' not in w"},
		{name: "starts_t", say: []string{"starting with 't'"}, code: "w.startswith('t')"},
		{name: "ends_n", say: []string{"ending with 'n'"}, code: "w.endswith('n')"},
	}
	wordMaps = []part{
		{name: "reversed", say: []string{"the reversed"}, code: "w[::-1]"},
		{name: "upper", say: []string{"the uppercased"}, code: "w.upper()"},
		{name: "lower", say: []string{"the lowercased"}, code: "w.lower()"},
		{name: "initials", say: []string{"the first letters of the"}, code: "w[0]"},
		{name: "finals", say: []string{"the last letters of the"}, code: "w[-1]"},
		{name: "prefixes", say: []string{"the first {k} letters of the"}, code: "w[:{k}]", ks: span(2, 3)},
	}
	wordReducers = []part{
		{name: "list", say: []string{"the list of"}, code: "L"},
		{name: "joined", say: []string{", joined by spaces"}, code: "' '.join(G)"},
		{name: "glued", say: []string{", joined without spaces"}, code: "''.join(G)"},
		{name: "sorted", say: []string{"the sorted list of", "the ascending list of"}, code: "sorted(G)"},
		{name: "backwards", say: []string{"the reversed list of"}, code: "L[::-1]"},
		{name: "count", say: []string{"the number of", "the count of"}, code: "len(L)"},
		{name: "distinct", say: []string{"the number of different"}, code: "len(set(G))"},
		{name: "longest", say: []string{"the longest of"}, code: "max(P, key=len, default='')"},
		{name: "shortest", say: []string{"the shortest of"}, code: "min(P, key=len, default='')"},
		{name: "letters", say: []string{"the total length of"}, code: "sum(G)"},
	}
)

// drawWorded folds the words of s.
func drawWorded(r *rand.Rand) draft {
	clause, reducer, mapping := maybe(r, 0.85, wordClauses), pick(r, wordReducers), none
	var opening, the, ending any = reducer, "the", ""
	element := "w"
	switch reducer.name {
	case "count", "distinct":
		the = ""
	case "longest", "shortest":
		ending = []string{", or '' if there are none", ", or '' if none"}
	case "letters":
		element = "len(w)"
	default:
		if reducer.name == "joined" || reducer.name == "glued" {
			opening, ending = "", reducer
		}
		if mapping = maybe(r, 0.7, wordMaps); !mapping.empty() {
			the, element = "", mapping.source()
		}
	}
	if clause.empty() && element == "w" {
		clause = pick(r, wordClauses)
	}
	generator := loop(element, "w", "s.split()", conjunction(clause))
	list := "[" + generator + "]"
	alone, followed := generator, "("+generator+")"
	return draft{
		family: "worded",
		uses:   []use{clause, mapping, reducer},
		domain: Words,
		say:    say(returns, opening, mapping, the, "words in s", clause, ending),
		body:   "return " + expand(reducer.source(), alone, followed, list),
	}
}
