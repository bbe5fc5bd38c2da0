package grading

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ReadSamples reads a file of samples in EvalPlus's format: the answers to each task,
// in the order of the file. A row has task_id, and solution or completion. program
// returns the answer in a row, and false for a task that the benchmark lacks. The
// error names the line.
func ReadSamples(path string, program func(task, text string, completion bool) (string, bool)) (map[string][]string, error) {
	samples := map[string][]string{}
	err := ReadLines(path, func(line []byte) error {
		var row struct {
			TaskID     string  `json:"task_id"`
			Solution   *string `json:"solution"`
			Completion *string `json:"completion"`
		}
		if err := json.Unmarshal(line, &row); err != nil {
			return fmt.Errorf("want a JSON object with task_id and solution or completion: %w", err)
		}
		text, completion := row.Solution, false
		if text == nil {
			text, completion = row.Completion, true
		}
		var given string
		if text != nil {
			given = *text
		}
		answer, known := program(row.TaskID, given, completion)
		switch {
		case !known:
			return fmt.Errorf("field task_id: the benchmark has no task %q", row.TaskID)
		case text == nil:
			return errors.New("want field solution or completion")
		}
		samples[row.TaskID] = append(samples[row.TaskID], answer)
		return nil
	})
	if err == nil && len(samples) == 0 {
		err = fmt.Errorf("%s: it has no samples", path)
	}
	return samples, err
}
