package grammar

import (
	"math/rand/v2"
	"strings"

	py "codea1/producers/problems/internal/minipy"
)

// Domain is a kind of input: the parameters of solve and the values they take.
type Domain struct {
	Name   string
	Params []string
	// Probes tell behaviours apart; the most telling come first.
	Probes [][]py.Value
	// Edges are the inputs every golden suite has.
	Edges [][]py.Value
	// near returns inputs at and around a constant of the program.
	near func(k int) [][]py.Value
	// Draw makes a random input. simple asks for one that is easy to work out
	// by hand: empty, a single item, a small number.
	Draw func(r *rand.Rand, simple bool) []py.Value
}

// The domains.
var (
	Numbers = &Domain{
		Name: "numbers", Params: []string{"xs"},
		Probes: lists("3 -1 2 2 8", "5 4 -6 0 7", "-3 -8 9 1 1", "6 2 9 4 3", "7 -2 -2 5 -9", "9 8 7 6 5", "1 2 3 4 5",
			"-5 -4 -7", "2 2", "4 -4 4", "0 0 3", "", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "-1", "-2", "-3", "-6", "-9",
			"8 3", "-7 6", "5 9 -8 6 -1", "-6 3 9 -9 2", "4 1 6 8 -5", "1 1 2", "6 5", "7 7 7 -3"),
		Edges: lists("", "3", "-2", "0", "4 4", "5 2 8 3", "-1 -6 7 -3 2", "1 9 1 6 9"),
		near: func(k int) [][]py.Value {
			return [][]py.Value{{ints(k-1, k, k+1)}, {ints(k, -k)}, {ints(k+1, k)}}
		},
		Draw: func(r *rand.Rand, simple bool) []py.Value { return []py.Value{drawList(r, simple)} },
	}
	Text = &Domain{
		Name: "text", Params: []string{"s"},
		Probes: texts("aBcE1", "Hello", "b2 Ae", "xyz", "AEIOU", "99", "e a", "", "a", "B", "7", " ", "kUdo3", "aab", "ZzE", "oo1b", "Ate4",
			"u-I", "bcd eF", "EeEe", "i9iX", "cab", "T", "aeb Ai", "Q5w2", "  b"),
		Edges: texts("", "a", "B", "aBcE1", "hello", "OddEven", "a1 b2", "XYZ"),
		near: func(k int) [][]py.Value {
			return texts(strings.Repeat("aB", k)[:k], strings.Repeat("eD3", k)[:k+1])
		},
		Draw: func(r *rand.Rand, simple bool) []py.Value { return []py.Value{py.Str(drawText(r, simple))} },
	}
	Words = &Domain{
		Name: "words", Params: []string{"s"},
		Probes: texts("the cat Ate a bean", "one two three", "apple egg Tin", "a bb ccc dddd", "Old owl", "bat abe tab", "", "hi", "Eve",
			"eat me at ten", "Go on", "nine", "x yy x", "banana bean", "tree Ice", "seven at", "abc", "e", "Ab cde fghi jklmno", "on no", "area tot"),
		Edges: texts("", "a", "cat", "the old Egg", "bat eat be", "to be or not", "Apple ten tea"),
		near: func(k int) [][]py.Value {
			word := strings.Repeat("tea", k)
			return texts(word[:k], word[:k+1]+" "+word[:k], "Is "+word[:max(k-1, 1)])
		},
		Draw: func(r *rand.Rand, simple bool) []py.Value { return []py.Value{py.Str(drawWords(r, simple))} },
	}
	// Whole is n with its digits; Count is an n that is counted up to.
	Whole = &Domain{
		Name: "whole", Params: []string{"n"},
		Probes: whole(1234, 7, -36, 905, 88, 42, 0, 5, 1, 2, 3, 4, 6, 8, 9, -1, -4, -7, 10, 11, 12, 13, 27, 59, 60, 64, 99, 100, 255, 386, 717, 5791, -20, -93),
		Edges:  whole(0, 1, -4, 7, 25, 60, 99, 308),
		near:   func(k int) [][]py.Value { return whole(k-1, k, k+1, 2*k, -k) },
		Draw: func(r *rand.Rand, simple bool) []py.Value {
			return []py.Value{py.Int(drawWhole(r, simple))}
		},
	}
	Count = &Domain{
		Name: "count", Params: []string{"n"},
		Probes: whole(12, 7, 9, 10, 6, 4, 0, 1, 2, 3, 5, 8, 11, 13, 15, 16, 18, 20, -1, -3),
		Edges:  whole(0, 1, -2, 2, 5, 6, 9, 12),
		near:   func(k int) [][]py.Value { return whole(k-1, k, k+1) },
		Draw: func(r *rand.Rand, simple bool) []py.Value {
			if simple {
				return []py.Value{py.Int(r.IntN(4))}
			}
			return []py.Value{py.Int(r.IntN(12) + 1)}
		},
	}
	Two = &Domain{
		Name: "two", Params: []string{"a", "b"},
		Probes: pairs(3, 8, 7, 2, -4, 5, 6, 6, 0, 9, -3, -8, 1, 1, 0, 0, 2, 3, 5, -5, 9, 4, -7, -2, 8, 1, 4, 4, -1, 0, 10, 3, 2, 12, 6, -9, -6, 7, 5, 7, 8, 4),
		Edges:  pairs(0, 0, 1, 2, 2, 1, 4, 4, -3, 5, 6, -2, -5, -1, 9, 7),
		near:   func(k int) [][]py.Value { return pairs(k, 1, k, k, k+1, k-1, 1, k) },
		Draw: func(r *rand.Rand, simple bool) []py.Value {
			if simple {
				return []py.Value{py.Int(r.IntN(4)), py.Int(r.IntN(4))}
			}
			return []py.Value{py.Int(r.IntN(19) - 9), py.Int(r.IntN(19) - 9)}
		},
	}
)

func drawList(r *rand.Rand, simple bool) py.List {
	length := r.IntN(2)
	if !simple {
		length = 2 + r.IntN(4)
	}
	list := make(py.List, length)
	for i := range list {
		if i > 0 && r.IntN(6) == 0 { // duplicates and ties
			list[i] = list[r.IntN(i)]
			continue
		}
		n := r.IntN(10)
		if r.IntN(4) == 0 {
			n = -n
		}
		list[i] = py.Int(n)
	}
	return list
}

func drawText(r *rand.Rand, simple bool) string {
	length := r.IntN(2)
	if !simple {
		length = 2 + r.IntN(4)
	}
	kinds := [...]string{"aeiou", "bcdfghklmnprst", "aeiou", "bcdt", "AEIOU", "BCDKT", "123456789", " "}
	var b strings.Builder
	for range length {
		kind := kinds[r.IntN(len(kinds))]
		b.WriteByte(kind[r.IntN(len(kind))])
	}
	return b.String()
}

var vocabulary = strings.Fields("a be cat eat Egg tea old Owl tree bean ten on Ice to apple no bat it seven two up Tin area nine abc")

func drawWords(r *rand.Rand, simple bool) string {
	count := r.IntN(2)
	if !simple {
		count = 2 + r.IntN(2)
	}
	words := make([]string, count)
	for i := range words {
		words[i] = vocabulary[r.IntN(len(vocabulary))]
	}
	return strings.Join(words, " ")
}

func drawWhole(r *rand.Rand, simple bool) int {
	n := r.IntN(10)
	if !simple {
		n = 10 + r.IntN(90)
		if r.IntN(3) == 0 {
			n = 100 + r.IntN(400)
		}
	}
	if r.IntN(6) == 0 {
		n = -n
	}
	return n
}

func ints(values ...int) py.List {
	list := make(py.List, len(values))
	for i, v := range values {
		list[i] = py.Int(v)
	}
	return list
}

func lists(texts ...string) [][]py.Value {
	inputs := make([][]py.Value, len(texts))
	for i, text := range texts {
		list := py.List{}
		for _, field := range strings.Fields(text) {
			list = append(list, py.Int(atoi(field)))
		}
		inputs[i] = []py.Value{list}
	}
	return inputs
}

func atoi(s string) int {
	n := 0
	for _, c := range strings.TrimPrefix(s, "-") {
		n = 10*n + int(c-'0')
	}
	if s[0] == '-' {
		return -n
	}
	return n
}

func texts(values ...string) [][]py.Value {
	inputs := make([][]py.Value, len(values))
	for i, v := range values {
		inputs[i] = []py.Value{py.Str(v)}
	}
	return inputs
}

func whole(values ...int) [][]py.Value {
	inputs := make([][]py.Value, len(values))
	for i, v := range values {
		inputs[i] = []py.Value{py.Int(v)}
	}
	return inputs
}

func pairs(values ...int) [][]py.Value {
	var inputs [][]py.Value
	for i := 0; i+1 < len(values); i += 2 {
		inputs = append(inputs, []py.Value{py.Int(values[i]), py.Int(values[i+1])})
	}
	return inputs
}
