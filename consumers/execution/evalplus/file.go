package evalplus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"codea1/consumers/execution/grading"
	"codea1/consumers/execution/literal"
)

// Task is a row of a release file.
type Task struct {
	ID         string `json:"task_id"`
	Prompt     string `json:"prompt"`
	EntryPoint string `json:"entry_point"`
	Canonical  string `json:"canonical_solution"` // the code after the prompt
	// Contract has assertions about the inputs. EvalPlus makes inputs with it and does
	// not grade with it.
	Contract string          `json:"contract"`
	Atol     float64         `json:"atol"`
	Base     json.RawMessage `json:"base_input"`
	Plus     json.RawMessage `json:"plus_input"`
	Test     json.RawMessage `json:"test"` // the base tests of HumanEval as a script; not used

	base, plus []literal.Tuple // the arguments of each call
}

// Solution returns the ground truth as a whole program.
func (t *Task) Solution() string { return t.Prompt + t.Canonical }

// BaseTests returns the number of base inputs. They come first.
func (t *Task) BaseTests() int { return len(t.base) }

// Tests returns the number of all inputs.
func (t *Task) Tests() int { return len(t.base) + len(t.plus) }

// inputs returns the arguments of all calls, base first.
func (t *Task) inputs() []literal.Tuple {
	return append(t.base[:len(t.base):len(t.base)], t.plus...)
}

// The prefixes of the tasks' names.
const (
	humanEval = "HumanEval/"
	mbpp      = "Mbpp/"
)

// ErrFormat is wrapped when a row is not EvalPlus's.
var ErrFormat = errors.New("not a row of EvalPlus's release format")

// ErrTwice is wrapped when two rows are of the same task.
var ErrTwice = errors.New("a task occurs twice")

// ReadFile reads a release file, gzipped or not. The error names the line.
func ReadFile(path string) ([]*Task, error) {
	var tasks []*Task
	seen := map[string]bool{}
	err := grading.ReadLines(path, func(line []byte) error {
		t := new(Task)
		if err := json.Unmarshal(finite(line), t); err != nil {
			return fmt.Errorf("%w: %w", ErrFormat, err)
		}
		switch {
		case !strings.HasPrefix(t.ID, humanEval) && !strings.HasPrefix(t.ID, mbpp):
			return fmt.Errorf("%w: task_id is %q, want %sN or %sN", ErrFormat, t.ID, humanEval, mbpp)
		case seen[t.ID]:
			return fmt.Errorf("%w: %s", ErrTwice, t.ID)
		case t.EntryPoint == "" || t.Canonical == "" || t.Prompt == "":
			return fmt.Errorf("%w: task %s lacks prompt, entry_point or canonical_solution", ErrFormat, t.ID)
		case !(t.Atol >= 0 && t.Atol <= 1):
			return fmt.Errorf("%w: task %s: atol is %v, outside 0 to 1", ErrFormat, t.ID, t.Atol)
		}
		var err error
		if t.base, err = t.arguments(t.Base); err != nil {
			return fmt.Errorf("task %s: base_input: %w", t.ID, err)
		}
		if t.plus, err = t.arguments(t.Plus); err != nil {
			return fmt.Errorf("task %s: plus_input: %w", t.ID, err)
		}
		if len(t.base) == 0 {
			return fmt.Errorf("%w: task %s has no base_input", ErrFormat, t.ID)
		}
		t.Base, t.Plus, t.Test = nil, nil, nil
		seen[t.ID] = true
		tasks = append(tasks, t)
		return nil
	})
	if err == nil && len(tasks) == 0 {
		err = fmt.Errorf("%s: %w: it has no rows", path, ErrFormat)
	}
	return tasks, err
}

// infinite is a number that JSON allows and that is over the range of a float. Python
// writes Infinity, which JSON does not have.
var infinite = []byte("1e999")

// finite replaces Infinity outside strings.
func finite(line []byte) []byte {
	if !bytes.Contains(line, []byte("Infinity")) {
		return line
	}
	var out []byte
	for inside := false; len(line) > 0; {
		switch {
		case inside && line[0] == '\\' && len(line) > 1:
			out, line = append(out, line[:2]...), line[2:]
		case !inside && bytes.HasPrefix(line, []byte("Infinity")):
			out, line = append(out, infinite...), line[len("Infinity"):]
		default:
			inside = inside != (line[0] == '"')
			out, line = append(out, line[0]), line[1:]
		}
	}
	return out
}
