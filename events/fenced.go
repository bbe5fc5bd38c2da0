package events

import "strings"

// FencedBlock is one ``` block of a response.
type FencedBlock struct {
	Language string // the info string's first word, lower case
	Text     string // the lines between the fences
}

// FencedBlocks returns the ``` blocks of a response in order. A block without an
// end, as in a response cut at the token limit, ends with the response.
func FencedBlocks(text string) []FencedBlock {
	var blocks []FencedBlock
	var body strings.Builder
	open := false
	language := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(trimmed, "```"):
			if open {
				body.WriteString(line)
			}
		case open:
			blocks = append(blocks, FencedBlock{language, body.String()})
			body.Reset()
			open = false
		default:
			open = true
			language = ""
			if f := strings.Fields(strings.TrimLeft(trimmed, "`")); len(f) > 0 {
				language = strings.ToLower(f[0])
			}
		}
	}
	if open {
		blocks = append(blocks, FencedBlock{language, body.String()})
	}
	return blocks
}

// ExtractCode returns the answer in a response of the Code LLM: the first
// ```python block, else the first fenced block, else the whole response.
func ExtractCode(response string) string {
	blocks := FencedBlocks(response)
	for _, b := range blocks {
		if b.Language == "python" {
			return b.Text
		}
	}
	if len(blocks) > 0 {
		return blocks[0].Text
	}
	return response
}
