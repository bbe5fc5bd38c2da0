package tokenizer

import (
	"fmt"
	"slices"
)

// A vocabulary file spells each byte as one printable rune, so that every token
// is readable JSON. Printable Latin-1 bytes stand for themselves; the rest are
// numbered from U+0100 in byte order (the table of GPT-2).
var (
	byteToRune = makeByteToRune()
	runeToByte = makeRuneToByte()
)

func makeByteToRune() (table [256]rune) {
	next := rune(0x100)
	for b := range table {
		if '!' <= b && b <= '~' || 0xA1 <= b && b <= 0xAC || 0xAE <= b && b <= 0xFF {
			table[b] = rune(b)
			continue
		}
		table[b] = next
		next++
	}
	return table
}

func makeRuneToByte() map[rune]byte {
	table := make(map[rune]byte, 256)
	for b, r := range byteToRune {
		table[r] = byte(b)
	}
	return table
}

// alphabet lists all bytes in the order of their runes, which is the order in
// which vocabularies number them.
func alphabet() []byte {
	bytes := make([]byte, 256)
	for i := range bytes {
		bytes[i] = byte(i)
	}
	slices.SortFunc(bytes, func(a, b byte) int { return int(byteToRune[a]) - int(byteToRune[b]) })
	return bytes
}

// spell writes token bytes in the alphabet of vocabulary files.
func spell(token string) string {
	runes := make([]rune, len(token))
	for i := range len(token) {
		runes[i] = byteToRune[token[i]]
	}
	return string(runes)
}

// unspell is the inverse of spell.
func unspell(s string) (string, error) {
	out := make([]byte, 0, len(s))
	for _, r := range s {
		b, ok := runeToByte[r]
		if !ok {
			return "", fmt.Errorf("token %q holds %q, which stands for no byte", s, r)
		}
		out = append(out, b)
	}
	return string(out), nil
}
