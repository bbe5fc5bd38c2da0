package main

import (
	"strings"

	"github.com/alecthomas/kong"

	"codea1/events"
)

// examples are the command lines in the help of each command. exampleOf has those of the
// stages.
var examples = map[string]string{
	"train": `
codea1 train
codea1 train --steps 40 --name first --budget 30m
codea1 train --problems mine.jsonl --heldout mine-test.jsonl
codea1 train --resume first --steps 80`,
	"eval": `
codea1 eval runs/first builtin:heldout
codea1 eval model mine.jsonl --preset paper --engine torch --greedy --name e
codea1 eval --resume e --json
codea1 eval runs/first builtin:heldout --role test --tests 3`,
	"experiment": `
codea1 experiment --example > first.yaml
codea1 experiment first.yaml --dry-run
codea1 experiment first.yaml --parallel 2`,
	"tap": `
codea1 tap first
codea1 tap first --from start --type group.rewarded --type policy.updated
codea1 tap first --json --where 'role == "code" && reward > 0.5'
codea1 tap first --bus kafka://127.0.0.1:9092`,
	"track": `
codea1 track first --to tensorboard
codea1 track first --to csv,mlflow --out figures
codea1 track first --to wandb --wandb-python venv/bin/python`,
	events.StageShadow: `
codea1 shadow first --reward selfplay
codea1 shadow first --reward utrl --reward mine.yaml --json
codea1 shadow first --reward utrl --bus nats://127.0.0.1:4222 --from start`,
	events.StageDashboard: "codea1 dashboard first\ncodea1 dashboard --run first --bus nats://127.0.0.1:4222",
	"doctor":              `codea1 doctor --engine torch`,
	"config":              `codea1 config > codea1.yaml`,
	"completion":          `codea1 completion bash >> ~/.bashrc`,
	"compare":             `codea1 compare runs/e results.jsonl`,
	"version":             `codea1 version`,
	"train-sft":           `codea1 train-sft code.jsonl --out model`,
	"deadletter list":     `codea1 deadletter list --run first --from-log`,
	"deadletter show":     `codea1 deadletter show LETTER --run first`,
	"deadletter retry":    `codea1 deadletter retry LETTER --run first`,
	"problems list":       `codea1 problems list builtin:heldout`,
	"problems show":       "codea1 problems show train-0001\ncodea1 problems show add-1 --set mine.jsonl",
	"problems check":      `codea1 problems check mine.jsonl`,
	"problems predict":    `codea1 problems predict builtin:train --out predict.jsonl`,
	"problems corpus":     `codea1 problems corpus --role code --rows 1000 --out code.jsonl`,
	"problems prompt":     "codea1 problems prompt train-0001 --role test\ncodea1 problems prompt --role test > test-prompt.txt",
	"sandbox check":       `codea1 sandbox check --json`,
	"sandbox grade":       `codea1 sandbox grade --answers answers.jsonl problems.jsonl`,
	"sandbox serve":       `codea1 sandbox serve --address 127.0.0.1:8080`,
	"mistakes list":       `codea1 mistakes list first --sort count --limit 20`,
	"mistakes show":       `codea1 mistakes show first train-0001 --at step:40`,
	"mistakes history":    `codea1 mistakes history first train-0001`,
	"mistakes export":     `codea1 mistakes export first --format parquet --out book.parquet`,
	"mistakes diff":       `codea1 mistakes diff first --from step:40 --to step:80`,
	"replay compact":      `codea1 replay compact first --to step:100`,
	"replay explain":      "codea1 replay explain first --group s000003-q0001\ncodea1 replay explain first --step 3 --role test",
	"replay export":       `codea1 replay export first --table answers --format parquet --out answers.parquet`,
	"replay fork":         `codea1 replay fork first second --at step:40 --set learning-rate=3e-4`,
	"replay rescore":      `codea1 replay rescore first --reward a1 --alpha 0.25`,
	"replay retrain":      `codea1 replay retrain first --role code`,
	"replay rebuild":      `codea1 replay rebuild first rebuilt --from-bus nats://127.0.0.1:4222`,
	"replay scan":         `codea1 replay scan first --code 'def __eq__' --step 1-40`,
	"replay state":        `codea1 replay state first --at step:40`,
	"replay verify":       `codea1 replay verify first --json`,
	"replay quarantine":   `codea1 replay quarantine first --json`,
	"replay restore-bus":  `codea1 replay restore-bus first`,
}

// exampleOf returns the examples of a command, which is named by its path.
func exampleOf(command string) string {
	stage, is := strings.CutPrefix(command, "stage ")
	switch {
	case !is:
		return strings.TrimSpace(examples[command])
	case stage == events.StageRecorder:
		return "codea1 stage recorder --run r1 --bus nats://HOST:4222 --steps 30"
	}
	return "codea1 " + command + " --run r1 --bus nats://HOST:4222"
}

// exitCodes are in the help of the program.
const exitCodes = `Exit codes: 0 done, 1 failed, 2 wrong command line, environment or configuration,
3 a check was done and its answer is no (doctor, problems check, replay retrain, replay verify, sandbox check),
130 interrupted.`

// describe adds the examples and the exit codes to the help.
func describe(root *kong.Node) {
	root.Detail = exitCodes
	_ = kong.Visit(root, func(v kong.Visitable, next kong.Next) error {
		if n, ok := v.(*kong.Node); ok && n != root {
			if lines := exampleOf(strings.TrimPrefix(n.FullPath(), "codea1 ")); n.Type == kong.CommandNode && n.Leaf() && lines != "" {
				n.Detail = strings.TrimSpace(n.Detail + "\n\nExamples:\n\n  " + strings.ReplaceAll(lines, "\n", "\n  "))
			}
		}
		return next(nil)
	})
}
