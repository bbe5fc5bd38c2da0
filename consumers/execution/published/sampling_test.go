package published

import (
	"strings"
	"testing"
)

// TestQuestionsAndAnswers checks that a question shows the fields of the file, and that
// the right response of a model is read as an answer that passes.
func TestQuestionsAndAnswers(t *testing.T) {
	crux := row("id", "s0", "code", "def f(x, n):\n    return [x] * n", "input", "'a', 2", "output", "['a', 'a']")
	stdin := live(t, "stdin", "", "1 2\n", "3\n")
	method := strings.Replace(live(t, "functional", "add", "1\n[2]", "[3]"), `"question_content":"?"`,
		`"question_content":"Add n.","starter_code":"class Solution:\n    def add(self, n, xs):\n        "`, 1)
	big := bigCodeRow("['math', 'unittest']")
	instruct := strings.Replace(big, `"task_id"`, `"instruct_prompt":"Write the root.","task_id"`, 1)
	for _, c := range []struct {
		file, id   string
		completion bool
		shows      string
		right      []string // responses
		wrong      []string
	}{
		{
			crux, "s0/output", false, "    return [x] * n\nassert f('a', 2) == ??\n[/PYTHON]\n[ANSWER]\n",
			[]string{"assert f('a', 2) == ['a', 'a']\n[/ANSWER]", "First [ANSWER]1[/ANSWER], no:\n[ANSWER]\n['a', 'a']\n[/ANSWER] done", "['a', 'a']"},
			[]string{"", "assert f('a', 2) == ['a']\n[/ANSWER]", "it returns ['a', 'a']"},
		},
		{
			crux, "s0/input", true, "assert f(??) == ['a', 'a']\n[/PYTHON]\n[ANSWER]\n",
			[]string{"assert f('a', 2) == ['a', 'a']\n[/ANSWER]\n[PYTHON] more", "f('a', n=2)", "'a', 2"},
			[]string{"", "assert f('a', 3) == ['a', 'a', 'a']\n[/ANSWER]"},
		},
		{
			stdin, "q1", false, "standard input",
			[]string{"Add them:\n```python\nprint(0)\n```\nno:\n```\nprint(sum(map(int, input().split())))\n```\n"},
			[]string{"", "print(3)", "```python\nprint(sum(map(int, input().split())))\n```\n```\nprint(0)\n```"},
		},
		{stdin, "q1", true, "### Answer\n```python\n", []string{"print(3)\n```\nThat is it."}, []string{"print(4)"}},
		{
			method, "q1", false, "class Solution:\n    def add(self, n, xs):\n",
			[]string{"```python\nclass Solution:\n    def add(self, n, xs):\n        return [x + n for x in xs]\n```"}, []string{"```python\nclass Solution: pass\n```"},
		},
		{big, "BigCodeBench/0", true, "\"\"\"The root.\"\"\"\n", []string{"    return math.sqrt(x)\n\nprint(task_func(4))\nassert 0"}, []string{"    return 0\n"}},
		{
			big, "BigCodeBench/0", false, "def task_func(x):\n    \"\"\"The root.\"\"\"\n",
			[]string{"```python\nimport math\ndef task_func(x):\n    return math.sqrt(x)\n```"}, []string{"I cannot."},
		},
		{instruct, "BigCodeBench/0", false, "Write the root.", []string{"Here:\n```python\ndef task_func(x):\n    return math.sqrt(x)\n```"}, []string{""}},
	} {
		tasks, err := ReadFile(write(t, "f.jsonl", c.file))
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range tasks {
			if task.ID() != c.id {
				continue
			}
			if question := task.Question(c.completion); !strings.Contains(question, c.shows) {
				t.Errorf("%s: the question is\n%s", c.id, question)
			}
			given := make([]string, 0, len(c.right)+1+len(c.wrong))
			for _, response := range c.right {
				given = append(given, task.Program(task.Answer(response, c.completion), c.completion))
			}
			right := len(given)
			for _, response := range c.wrong {
				given = append(given, task.Program(task.Answer(response, c.completion), c.completion))
			}
			for i, v := range verdicts(t, grader(t), c.file, c.id, given...) {
				if v.Passed != (i < right) {
					t.Errorf("%s: %q passes: %v (%s)", c.id, given[i], v.Passed, v.Reason)
				}
			}
		}
	}
}
