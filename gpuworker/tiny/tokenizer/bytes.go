package tokenizer

import (
	"fmt"
	"slices"
)

// A vocabulary file writes each byte as one printable rune, so that every token is
// readable JSON. A printable Latin-1 byte is its own rune; the other bytes are the
// runes from U+0100 in byte order (the table of GPT-2).
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

// alphabet returns all bytes in the order of their runes. Vocabularies number the
// bytes in this order.
func alphabet() []byte {
	bytes := make([]byte, 256)
	for i := range bytes {
		bytes[i] = byte(i)
	}
	slices.SortFunc(bytes, func(a, b byte) int { return int(byteToRune[a]) - int(byteToRune[b]) })
	return bytes
}

// spell writes the bytes of a token as in a vocabulary file.
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
			return "", fmt.Errorf("token %q contains %q, which is not the rune of a byte", s, r)
		}
		out = append(out, b)
	}
	return string(out), nil
}
