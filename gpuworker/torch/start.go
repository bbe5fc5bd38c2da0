package torch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"codea1/events"
	"codea1/gpuworker/checkpoint"
)

// CopyStart copies the checkpoint that a role's model starts from into dir, unless
// dir exists. from is a checkpoint directory or a name on the Hugging Face hub.
// The Python side checks that it can run the model.
func CopyStart(ctx context.Context, python string, role events.Role, from, dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	return checkpoint.WriteInitial(dir, func(temporary string) error {
		if _, err := runModule(ctx, python, "prepare", from, temporary); err != nil {
			return fmt.Errorf("--%s-model: %w", role, err)
		}
		return nil
	})
}

// Report has the libraries and devices of a Python.
type Report struct {
	Package   string            `json:"package"`
	Python    string            `json:"python"`
	Libraries map[string]string `json:"libraries"` // name to version
	Missing   map[string]string `json:"missing"`   // name to the error of its import
	VLLM      string            `json:"vllm"`      // why --sampler vllm cannot be used; empty: it can
	CUDA      string            `json:"cuda"`      // version that torch was built for; empty for the CPU
	Devices   []Device          `json:"devices"`
}

// Device is a GPU. Free and Total are bytes of memory.
type Device struct {
	Name        string `json:"name"`
	Free, Total uint64
}

// Examine asks a Python for its libraries and devices.
func Examine(ctx context.Context, python string) (*Report, error) {
	out, err := runModule(ctx, python, "doctor")
	if err != nil {
		return nil, err
	}
	r := new(Report)
	if err := json.Unmarshal(out, r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return r, nil
}

// runModule runs a command of codea1_torch to its end and returns its standard
// output.
func runModule(ctx context.Context, python string, arguments ...string) ([]byte, error) {
	python = Options{Python: python}.withDefaults().Python
	command := exec.CommandContext(ctx, python, append([]string{"-m", "codea1_torch"}, arguments...)...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	switch exit := new(exec.ExitError); {
	case err == nil:
		return stdout.Bytes(), nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &exit):
		wrote := stderr.String()
		if err := missingModule(command.Path, wrote); err != nil {
			return nil, err
		}
		return nil, errors.New(lastLines(wrote))
	}
	return nil, fmt.Errorf("start %s: %w; %s", python, err, Install)
}

// missingModule returns an error with the remedy if a Python wrote that it lacks a
// module.
func missingModule(python, wrote string) error {
	_, module, ok := strings.Cut(wrote, "No module named ")
	if !ok {
		return nil
	}
	module, _, _ = strings.Cut(module, "\n")
	return fmt.Errorf("%s has no module %s; %s", python, strings.Trim(module, "'"), Install)
}

// lastLines returns the end of a text.
func lastLines(text string) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-tailLines):], "\n")
}
