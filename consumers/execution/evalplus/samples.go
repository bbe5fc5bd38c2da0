package evalplus

import (
	"encoding/json"
	"errors"
	"fmt"

	"codea1/consumers/execution/grading"
)

// Sample is a row of a file of samples in EvalPlus's format.
type Sample struct {
	TaskID   string `json:"task_id"`
	Solution string `json:"solution"` // a whole program
}

// ReadSamples reads the samples of tasks, by task, each in the order of the file. A
// row has solution, a whole program, or completion, which follows the prompt. The
// error names the line.
func ReadSamples(path string, tasks []*Task) (map[string][]string, error) {
	known := map[string]*Task{}
	for _, t := range tasks {
		known[t.ID] = t
	}
	samples := map[string][]string{}
	err := grading.ReadLines(path, func(line []byte) error {
		var row struct {
			TaskID     string  `json:"task_id"`
			Solution   *string `json:"solution"`
			Completion *string `json:"completion"`
		}
		if err := json.Unmarshal(line, &row); err != nil {
			return fmt.Errorf("want a JSON object with task_id and solution or completion: %w", err)
		}
		task := known[row.TaskID]
		switch {
		case task == nil:
			return fmt.Errorf("the benchmark has no task %q", row.TaskID)
		case row.Solution != nil:
			samples[row.TaskID] = append(samples[row.TaskID], *row.Solution)
		case row.Completion != nil:
			samples[row.TaskID] = append(samples[row.TaskID], task.Prompt+*row.Completion)
		default:
			return errors.New("want solution or completion")
		}
		return nil
	})
	if err == nil && len(samples) == 0 {
		err = fmt.Errorf("%s: it has no samples", path)
	}
	return samples, err
}
