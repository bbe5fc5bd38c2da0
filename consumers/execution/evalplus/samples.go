package evalplus

import "codea1/consumers/execution/grading"

// Sample is a row of a file of samples in EvalPlus's format.
type Sample struct {
	TaskID   string `json:"task_id"`
	Solution string `json:"solution"` // a whole program
}

// ReadSamples reads the samples of tasks, by task, as grading.ReadSamples does. A
// solution is a whole program, and a completion follows the prompt.
func ReadSamples(path string, tasks []*Task) (map[string][]string, error) {
	known := map[string]*Task{}
	for _, t := range tasks {
		known[t.ID] = t
	}
	return grading.ReadSamples(path, func(id, text string, completion bool) (string, bool) {
		task := known[id]
		if task != nil && completion {
			text = task.Prompt + text
		}
		return text, task != nil
	})
}
