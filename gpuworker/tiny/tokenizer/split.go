package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// SplitPattern is Qwen2's split pattern as in tokenizer.json. nextPiece implements
// it in Go: Go's regexp has no look-ahead, and a backtracking engine needs
// quadratic time for long runs.
const SplitPattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

type class uint8

const (
	other   class = iota // all other runes and invalid UTF-8
	letter               // \p{L}
	number               // \p{N}
	newline              // \r \n
	space                // \s but not newline
)

// classify returns the class and width of the rune at the start of s.
func classify(s string) (class, int) {
	c := s[0]
	if c < utf8.RuneSelf {
		switch {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
			return letter, 1
		case '0' <= c && c <= '9':
			return number, 1
		case c == '\r' || c == '\n':
			return newline, 1
		case c == ' ' || '\t' <= c && c <= '\r':
			return space, 1
		}
		return other, 1
	}
	r, width := utf8.DecodeRuneInString(s)
	switch {
	case r == utf8.RuneError && width == 1:
		return other, 1
	case unicode.Is(unicode.L, r):
		return letter, width
	case unicode.Is(unicode.N, r):
		return number, width
	case unicode.Is(unicode.White_Space, r):
		return space, width
	}
	return other, width
}

// nextPiece returns the length of the first piece of s, which is not empty. Its
// branches have the order of the pattern's alternatives.
func nextPiece(s string) int {
	if n := contraction(s); n > 0 {
		return n
	}
	first, width := classify(s)
	switch first {
	case letter:
		return run(s, 0, letter)
	case number:
		return width
	}
	if first != newline && width < len(s) {
		if next, _ := classify(s[width:]); next == letter {
			return run(s, width, letter)
		}
	}
	if first == other {
		return punctuation(s, 0)
	}
	if s[0] == ' ' && len(s) > 1 {
		if next, _ := classify(s[1:]); next == other {
			return punctuation(s, 1)
		}
	}
	return whitespace(s)
}

// contraction matches (?i:'s|'t|'re|'ve|'m|'ll|'d). By Unicode case folding the
// long s matches s.
func contraction(s string) int {
	if s[0] != '\'' || len(s) < 2 {
		return 0
	}
	switch s[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if len(s) > 2 && s[2]|0x20 == 'e' {
			return 3
		}
	case 'l':
		if len(s) > 2 && s[2]|0x20 == 'l' {
			return 3
		}
	}
	const longS = "'\u017f"
	if len(s) >= len(longS) && s[:len(longS)] == longS {
		return len(longS)
	}
	return 0
}

// run returns the end of the run of class c that starts at from.
func run(s string, from int, c class) int {
	for from < len(s) {
		got, width := classify(s[from:])
		if got != c {
			break
		}
		from += width
	}
	return from
}

// punctuation matches [^\s\p{L}\p{N}]+[\r\n]* from offset from.
func punctuation(s string, from int) int {
	return run(s, run(s, from, other), newline)
}

// whitespace matches \s*[\r\n]+|\s+(?!\S)|\s+ at a run of white space.
func whitespace(s string) int {
	end, lastNewline, lastStart := 0, 0, 0
	for end < len(s) {
		c, width := classify(s[end:])
		if c != space && c != newline {
			break
		}
		lastStart = end
		end += width
		if c == newline {
			lastNewline = end
		}
	}
	switch {
	case lastNewline > 0:
		return lastNewline
	case end == len(s) || lastStart == 0:
		return end
	}
	return lastStart // the last space belongs to the next word
}
