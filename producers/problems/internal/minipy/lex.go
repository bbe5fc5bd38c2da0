package minipy

import (
	"fmt"
	"strings"
)

type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenInt
	tokenStr
	tokenName
	tokenMark // operator or punctuation
)

type token struct {
	kind tokenKind
	text string
}

// marks are tried in order, so longer ones stand before their prefixes.
var marks = []string{"//", "<=", ">=", "==", "!=", "+=", "(", ")", "[", "]", ",", ":", ".", "+", "-", "*", "%", "<", ">", "="}

// lexLine splits one line, without its indentation, into tokens.
func lexLine(line string) ([]token, error) {
	tokens := make([]token, 0, 8+len(line)/3)
	for i := 0; i < len(line); {
		c := line[i]
		switch {
		case c == ' ':
			i++
		case isDigit(c):
			end := i + 1
			for end < len(line) && isDigit(line[end]) {
				end++
			}
			tokens = append(tokens, token{tokenInt, line[i:end]})
			i = end
		case isNameStart(c):
			end := i + 1
			for end < len(line) && (isNameStart(line[end]) || isDigit(line[end])) {
				end++
			}
			tokens = append(tokens, token{tokenName, line[i:end]})
			i = end
		case c == '\'':
			length := strings.IndexByte(line[i+1:], '\'')
			if length < 0 || strings.ContainsRune(line[i+1:i+1+length], '\\') {
				return nil, fmt.Errorf("column %d: unterminated or escaped string", i+1)
			}
			tokens = append(tokens, token{tokenStr, line[i+1 : i+1+length]})
			i += length + 2
		default:
			mark := markAt(line[i:])
			if mark == "" {
				return nil, fmt.Errorf("column %d: unexpected %q", i+1, c)
			}
			tokens = append(tokens, token{tokenMark, mark})
			i += len(mark)
		}
	}
	return tokens, nil
}

func markAt(rest string) string {
	for _, mark := range marks {
		if strings.HasPrefix(rest, mark) {
			return mark
		}
	}
	return ""
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isNameStart(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' }
