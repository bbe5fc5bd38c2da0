package grammar

import "math/rand/v2"

// family is a way to compose parts into problems.
type family struct {
	name  string
	quota int // problems to accept, training and held-out together
	draw  func(*rand.Rand) draft
}

var families = []family{
	{"fold", 950, drawFold},                 // the sum of the squares of the even numbers in xs
	{"quantified", 140, drawQuantified},     // True if every even number in xs is above 3
	{"replaced", 130, drawReplaced},         // xs with every odd number doubled
	{"found", 150, drawFound},               // the first even number in xs, or -1
	{"stopped", 80, drawStopped},            // the sum of the numbers before the first negative one
	{"running", 60, drawRunning},            // the running sums of the odd numbers in xs
	{"paired", 140, drawPaired},             // the gaps of the rising adjacent pairs in xs
	{"combined", 170, drawCombinedNumbers},  // the sum of the even numbers minus the length of xs
	{"branched", 150, drawBranched},         // if xs is sorted, its length, otherwise 0
	{"spelled", 260, drawSpelled},           // the vowels of s, in uppercase, reversed
	{"rewritten", 100, drawRewritten},       // s with every digit replaced by '*'
	{"screened", 70, drawScreened},          // True if no character of s is a digit
	{"tallied", 80, drawCombinedCharacters}, // the number of vowels minus the number of digits
	{"worded", 200, drawWorded},             // the reversed words in s longer than 3
	{"chosen", 150, drawChosen},             // if n is even, n squared, otherwise n plus 1
	{"matched", 110, drawMatched},           // if a is greater than b, a minus b, otherwise 0
}
