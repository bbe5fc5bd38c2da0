package fenced

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCode(t *testing.T) {
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
		if diff := cmp.Diff(c.want, Code(c.response)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestFirstTest(t *testing.T) {
	for name, c := range map[string]struct{ response, test, call string }{
		"an assertion":            {"```python\nassert f(1) == 2\nassert f(2) == 3\n```", "assert f(1) == 2\n", ""},
		"no block":                {"assert f(1) == 2", "assert f(1) == 2\n", ""},
		"several lines":           {"```python\nassert f(\n    '\\'(', # )\n    \"\"\"\n)\"\"\") == [\n1]\nx = 2\n```", "assert f(\n    '\\'(', # )\n    \"\"\"\n)\"\"\") == [\n1]\n", ""},
		"a continued line":        {"assert f(1) \\\n  == 2\nx", "assert f(1) \\\n  == 2\n", ""},
		"a comment":               {"assert f(1) == 2 # (\nx", "assert f(1) == 2 # (\n", ""},
		"a text without an end":   {"assert f('\nassert f(2)", "assert f('\n", ""},
		"variables":               {"```python\nx = [1]\nassert f(x) == 2\n```", "x = [1]\nassert f(x) == 2\n", ""},
		"a function":              {"```python\nfrom m import f\n\ndef test_f():\n    x = 1\n\n    assert f(x) == 2\n    assert f(2) == 3\n```", "def test_f():\n    x = 1\n\n    assert f(x) == 2\n", "test_f()\ndel test_f\n"},
		"another name":            {"def check():\n\tassert f(1) == 2", "def check():\n\tassert f(1) == 2\n", "check()\ndel check\n"},
		"a function after one":    {"def test_a():\n    x = 1\n\ndef test_b():\n    assert f(1)\n", "def test_a():\n    x = 1\n\ndef test_b():\n    assert f(1)\n", "test_b()\ndel test_b\n"},
		"thoughts":                {"<think>assert f(0)</think>assert f(1)", "assert f(1)\n", ""},
		"cut at the token limit":  {"```python\ndef test_f():\n    assert f(", "def test_f():\n    assert f(\n", "test_f()\ndel test_f\n"},
		"another word":            {"assert_equal(f(1), 2)", "", ""},
		"no assertion":            {"```python\nf(1)\n```", "", ""},
		"empty":                   {"", "", ""},
		"one that may not run":    {"def test_f():\n    if f(1):\n        assert f(1) == 2", "", ""},
		"one that is not called":  {"if __name__ == '__main__':\n    assert f(1) == 2", "", ""},
		"one of a method":         {"class TestF:\n    def test_f(self):\n        assert f(1) == 2", "", ""},
		"one after the module":    {"def helper():\n    return 1\nif 0:\n    assert f(1)", "", ""},
		"a function on one line":  {"def test_f(): assert f(1) == 2", "", ""},
		"parameters over 2 lines": {"def test_f(\n):\n    assert f(1)\n", "", ""},
	} {
		if test, call := FirstTest(c.response); test != c.test || call != c.call {
			t.Errorf("%s: %q, %q; want %q, %q", name, test, call, c.test, c.call)
		}
	}
}

func FuzzFirstTest(f *testing.F) {
	f.Add("```python\ndef test_f():\n    assert f('''(''') == \\\n 1\n```")
	f.Fuzz(func(t *testing.T, response string) {
		if test, _ := FirstTest(response); len(test) > len(response)+1 {
			t.Errorf("a test of %d bytes in a response of %d", len(test), len(response))
		}
	})
}

func FuzzFencedBlocks(f *testing.F) {
	f.Add("```python\nx\n```\ntext\n```")
	f.Fuzz(func(t *testing.T, text string) {
		total := 0
		for _, b := range Blocks(text) {
			total += len(b.Text)
		}
		if total > len(text) {
			t.Errorf("blocks hold %d bytes of a text of %d", total, len(text))
		}
	})
}
