package main

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v4"

	"codea1/consumers/execution/sandbox"
	"codea1/events/connect"
)

const (
	defaultPreset  = "tiny"
	defaultRunsDir = "runs"
)

// RunFlags say what a run is. Who starts one takes them: train, and the
// recorder of a run whose stages are processes of their own.
type RunFlags struct {
	Preset string `help:"Hyper-parameters to start from: tiny (the embedded engine on a laptop) or paper." default:"tiny" enum:"tiny,paper"`
	Config string `help:"YAML file with any of these flags as keys; print one with codea1 config." placeholder:"FILE" type:"path"`

	RunsDir  string `help:"Where run directories are." default:"runs" placeholder:"DIR"`
	Problems string `help:"Training problems: builtin:train, or a .jsonl, .jsonl.gz or .parquet file." default:"builtin:train"`
	Heldout  string `help:"Problems of the evaluations, never trained on; empty for no evaluation." default:"builtin:heldout"`
	OnBadRow string `help:"What a malformed row of a problem file does: fail or skip." default:"fail" enum:"fail,skip"`

	CodeModel string `help:"Checkpoint directory the Code LLM starts from; empty for the embedded one." placeholder:"DIR"`
	TestModel string `help:"Checkpoint directory the Test LLM starts from; empty for the embedded one." placeholder:"DIR"`

	KeepCheckpoints int `help:"Newest checkpoints kept per model." default:"3"`
	KeepEvery       int `help:"Also keep the checkpoints of steps that this divides; 0 for none." default:"0"`
	KeepTokens      int `help:"Newest trained steps whose token ids and log-probs the log keeps, which take most of its space; 0 for all. Without them a step cannot be retrained." default:"0"`

	Bus             connect.Flags `embed:"" group:"Message bus"`
	HoldDeadLetters time.Duration `help:"How long the group of an event that a stage gave up on waits for codea1 deadletter retry before it is dropped." default:"0s" group:"Message bus"`
	AckWait         time.Duration `help:"How long an event whose worker has died waits for another one." default:"5s" group:"Message bus"`
	Sandbox         sandbox.Flags `embed:"" group:"Sandbox"`

	Hyper
}

// mayChange are the flags that may differ when a run goes on: where things
// are, how they are reached and shown, and how long it lasts. All others are
// what the run is.
var mayChange = []string{
	"preset", "runs-dir", "steps", "epochs", "budget", "eval-every",
	"bus", "bus-replicas", "bus-partitions", "bus-stream-mib", "bus-user", "bus-password-file", "bus-sasl", "bus-token-file", "bus-nkey-file", "bus-creds-file",
	"bus-tls", "bus-ca-file", "bus-cert-file", "bus-key-file", "ack-wait", "hold-dead-letters", "port",
	"dashboard-address", "no-dashboard", "python", "sandbox", "sandboxes", "sandbox-level", "call-timeout", "job-timeout", "memory-mib",
	"keep-checkpoints", "keep-every", "keep-tokens", "help", "log-level", "resume", "run", "probe-address", "instance", "lease-ttl",
}

// ofMachine are the flags that a process never takes from a run.started: what
// runs on a machine, and how well it is confined, is said on that machine, not
// by whoever can publish on the bus.
var ofMachine = []string{"runs-dir", "python", "sandbox", "sandbox-level", "sandboxes"}

// paths are the flags that may lead to the same on two machines and be different.
var paths = []string{"problems", "heldout", "code-model", "test-model"}

// whatDiffers names a flag in which two configurations, as runYAML writes them,
// are those of different runs; none when they are not.
func whatDiffers(a, b string) (string, error) {
	var was, now map[string]any
	if err := errors.Join(yaml.Unmarshal([]byte(a), &was), yaml.Unmarshal([]byte(b), &now)); err != nil {
		return "", fmt.Errorf("configuration in run.started: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if value, ok := was[name]; ok && !reflect.DeepEqual(value, now[name]) && !slices.Contains(mayChange, name) && !slices.Contains(paths, name) {
			return fmt.Sprintf("--%s (%v there, %v here)", name, value, now[name]), nil
		}
	}
	return "", nil
}

// runYAML returns the configuration of a run, as the flags of a command line
// have it, as a file that --config accepts.
func runYAML(flags *kong.Context) (string, error) {
	values := map[string]string{}
	for _, f := range flags.Flags() {
		values[f.Name] = fmt.Sprint(flags.FlagValue(f))
		if bus, ok := flags.FlagValue(f).(string); ok && f.Name == "bus" {
			values[f.Name] = connect.PublicURL(bus)
		}
	}
	var keys []*kong.Flag // those that this command has
	for _, f := range trainKeys(flags) {
		if _, ok := values[f.Name]; ok {
			keys = append(keys, f)
		}
	}
	var b strings.Builder
	err := writeConfig(&b, keys, func(f *kong.Flag) string { return values[f.Name] })
	return b.String(), err
}
