package events

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExtractCode(t *testing.T) {
	for name, c := range map[string]struct{ response, want string }{
		"python block":            {"Sure:\n```python\nx = 1\n```\nDone.", "x = 1\n"},
		"first python block":      {"```python\na\n```\n```python\nb\n```", "a\n"},
		"python before others":    {"```\nnot this\n```\n```Python\nthis\n```", "this\n"},
		"any block":               {"```py3\nx\n```", "x\n"},
		"no block":                {"def f(): pass", "def f(): pass"},
		"cut at the token limit":  {"```python\nx = 1\ny =", "x = 1\ny ="},
		"a fence inside a string": {"```python\nx = '```'\n```", "x = '```'\n"},
		"empty block":             {"```python\n```", ""},
		"indented fence":          {"  ```python\n  x\n  ```", "  x\n"},
	} {
		if diff := cmp.Diff(c.want, ExtractCode(c.response)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func FuzzFencedBlocks(f *testing.F) {
	f.Add("```python\nx\n```\ntext\n```")
	f.Fuzz(func(t *testing.T, text string) {
		total := 0
		for _, b := range FencedBlocks(text) {
			total += len(b.Text)
		}
		if total > len(text) {
			t.Errorf("blocks hold %d bytes of a text of %d", total, len(text))
		}
	})
}
