package published

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"codea1/consumers/execution/grading"
)

// Task is one problem of a published file.
type Task interface {
	// ID is the problem's name in files of samples and results.
	ID() string
	// Truth is the answer that the file itself has; empty if the format has none.
	Truth() string
	// Question returns the prompt for a chat, or for a completion of its text.
	Question(completion bool) string
	// Answer returns the solution in a response of a chat, or the completion in a
	// continuation of the prompt.
	Answer(response string, completion bool) string
	// Program returns the answer in a sample: of its solution, or of its completion,
	// the text that follows the prompt.
	Program(text string, completion bool) string
	// modules are the modules that the problem names as its needs.
	modules() []string
	// grade grades an answer. The error is one of the sandbox or of ctx.
	grade(ctx context.Context, g *Grader, answer string) (Verdict, error)
}

// Verdict is the result of one answer.
type Verdict struct {
	Answer    string // as in the sample
	Passed    bool
	Behaviour string // equal for two answers that did the same: majority counts it
	Reason    string // why it does not pass
}

// ErrUnknown is wrapped for a file of no format here, judged by the fields of its first row.
var ErrUnknown = errors.New("neither a file of CRUXEval (fields id, code, input, output), of LiveCodeBench (question_id, question_content, public_test_cases) nor of BigCodeBench (task_id, complete_prompt, test)")

// formats are the readers of a row, by a field that only this format has with the
// others in ErrUnknown.
var formats = []struct {
	fields []string
	read   func(line []byte) ([]Task, error)
}{
	{[]string{"id", "code", "input", "output"}, readCruxEval},
	{[]string{"question_id", "question_content", "public_test_cases"}, readLiveCode},
	{[]string{"task_id", "complete_prompt", "test"}, readBigCode},
}

// ReadFile reads a published file, gzipped or not. Its first row decides the format.
// The error names the file, the line and the field.
func ReadFile(path string) ([]Task, error) {
	var tasks []Task
	var read func([]byte) ([]Task, error)
	seen := map[string]bool{}
	err := grading.ReadLines(path, func(line []byte) error {
		if read == nil {
			if read = format(line); read == nil {
				return ErrUnknown
			}
		}
		more, err := read(line)
		if err != nil {
			return err
		}
		for _, t := range more {
			if seen[t.ID()] {
				return fmt.Errorf("problem %s occurs twice", t.ID())
			}
			seen[t.ID()] = true
		}
		tasks = append(tasks, more...)
		return nil
	})
	if err == nil && len(tasks) == 0 {
		err = fmt.Errorf("%s: %w: it has no rows", path, ErrUnknown)
	}
	return tasks, err
}

// format returns the reader of a row, or nil.
func format(line []byte) func([]byte) ([]Task, error) {
	var row map[string]json.RawMessage
	if json.Unmarshal(line, &row) != nil {
		return nil
	}
	for _, f := range formats {
		all := true
		for _, field := range f.fields {
			_, has := row[field]
			all = all && has
		}
		if all {
			return f.read
		}
	}
	return nil
}

// missing returns an error that names the first empty field, given names and values in
// turn.
func missing(id string, fields ...string) error {
	for i := 0; i < len(fields); i += 2 {
		if fields[i+1] == "" {
			return fmt.Errorf("problem %q: field %s is missing or empty", id, fields[i])
		}
	}
	return nil
}

// ReadSamples reads the answers to tasks, by ID, as grading.ReadSamples does.
func ReadSamples(path string, tasks []Task) (map[string][]string, error) {
	known := map[string]Task{}
	for _, t := range tasks {
		known[t.ID()] = t
	}
	return grading.ReadSamples(path, func(id, text string, completion bool) (string, bool) {
		task := known[id]
		if task == nil {
			return "", false
		}
		return task.Program(text, completion), true
	})
}
