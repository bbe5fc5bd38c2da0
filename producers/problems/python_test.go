package problems

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"testing"
)

// runPython runs a script with the modules of the generator. The script finds
// the job in the variable job and leaves its answer in the variable answer.
func runPython(t *testing.T, script string, job, answer any) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatalf("the project needs Python 3: %v", err)
	}
	input, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), python, "-I", "-B", "-W", "ignore", "-c",
		"import json, sys\nsys.path.insert(0, 'generator')\njob = json.load(sys.stdin)\n"+script+"\njson.dump(answer, sys.stdout)")
	command.Stdin = bytes.NewReader(input)
	output, err := command.Output()
	if err != nil {
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			t.Fatalf("python: %v\n%s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	if err := json.Unmarshal(output, answer); err != nil {
		t.Fatalf("python's answer: %v", err)
	}
}
