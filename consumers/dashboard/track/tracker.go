package track

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"go.yaml.in/yaml/v4"

	"codea1/consumers/dashboard"
	"codea1/events"
)

// Tools are the tools to write for.
var Tools = []string{"tensorboard", "csv", "mlflow", "wandb", "otlp"}

// Types returns the types of the events that a Tracker for tools needs: traces have all
// events of a group.
func Types(tools []string) []events.Type {
	types := []events.Type{
		events.TypeRunStarted, events.TypeRunFinished, events.TypeGroupRewarded, events.TypeGroupDropped, events.TypePolicyUpdated, events.TypeEvalScored,
	}
	if slices.Contains(tools, "otlp") {
		types = append(types, events.TypeProblemPosed, events.TypeCodeSampled, events.TypeTestsSampled, events.TypeCodeExecuted)
	}
	return types
}

// ErrInUse says that another process writes the files of a tool.
var ErrInUse = errors.New("another process writes the figures of this run already")

// header describes the run that a sink is opened for.
type header struct {
	dir    string // that the tools share
	run    string
	id     string // the same at each start of a Tracker
	began  time.Time
	config map[string]string // settings of the run
	python string            // for W&B
	logger *slog.Logger
}

// sink writes the rows of a run for a tool.
type sink interface {
	write(row dashboard.Row) error
	flush() error                // makes the rows visible to the tool
	close(finished string) error // why the run finished; empty if it did not
}

// openers open the sink of each tool and remove what an earlier one wrote.
var openers = map[string]func(*header) (sink, error){
	"tensorboard": openTensorBoard, "csv": openCSV, "mlflow": openMLflow, "wandb": openWandb, "otlp": openOTLP,
}

// parseTools returns the tools in a list with commas.
func parseTools(list string) ([]string, error) {
	var tools []string
	for tool := range strings.SplitSeq(list, ",") {
		if tool = strings.TrimSpace(tool); tool == "" || slices.Contains(tools, tool) {
			continue
		}
		if openers[tool] == nil {
			return nil, fmt.Errorf("%q is no tool that figures can be written for; there are: %s", tool, strings.Join(Tools, ", "))
		}
		tools = append(tools, tool)
	}
	return tools, nil
}

// Tracker writes the rows of a run for some tools. It is not safe for concurrent use.
type Tracker struct {
	tools  []string
	header header
	rows   *dashboard.Rows
	sinks  map[string]sink // nil before the first event
	lock   *flock.Flock
	live   bool // beside a training, which goes on without it
	failed error
}

// New returns a tracker that writes below dir. python runs W&B's SDK. The caller closes
// the tracker.
func New(tools []string, dir, python string, logger *slog.Logger) (*Tracker, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(dir, ".lock"))
	if locked, err := lock.TryLock(); err != nil || !locked {
		return nil, fmt.Errorf("%s: %w", dir, errors.Join(ErrInUse, err))
	}
	return &Tracker{tools: tools, header: header{dir: dir, python: python, logger: logger}, rows: dashboard.NewRows(), lock: lock}, nil
}

// Apply folds in the next event of the run. A tool that fails gets no more rows; Close
// returns its error.
func (t *Tracker) Apply(e *events.Event) {
	if start, ok := e.Payload.(*events.RunStarted); ok && t.sinks == nil {
		t.open(e, start)
	}
	t.trace(e)
	for _, row := range t.rows.Apply(e) {
		t.each(func(s sink) error { return s.write(row) })
	}
}

// trace gives an event to the sink for traces.
func (t *Tracker) trace(e *events.Event) {
	t.each(func(s sink) error {
		if s, ok := s.(*otlp); ok {
			return s.event(e)
		}
		return nil
	})
}

// Flush makes the rows so far visible to the tools.
func (t *Tracker) Flush() { t.each(sink.flush) }

// Close ends the output of every tool, and returns the errors of those that failed.
func (t *Tracker) Close() error {
	finished := t.rows.State().Finished
	t.each(func(s sink) error { return s.close(finished) })
	t.sinks = nil
	return errors.Join(t.failed, t.lock.Unlock())
}

// State returns the state of the run so far, which must not be kept or changed.
func (t *Tracker) State() *dashboard.State { return t.rows.State() }

func (t *Tracker) open(e *events.Event, start *events.RunStarted) {
	t.header.run, t.header.id, t.header.began = e.Run, identity(e), e.Time
	t.header.config = parameters(start.Config)
	t.sinks = map[string]sink{}
	for _, tool := range t.tools {
		s, err := openers[tool](&t.header)
		if err != nil {
			t.fail(tool, err)
			continue
		}
		t.sinks[tool] = s
	}
}

// identity returns 32 hex digits that name a run among all runs.
func identity(first *events.Event) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", first.Run, first.Time.UnixNano()))
	return hex.EncodeToString(sum[:16])
}

// escapeGlob returns the pattern that matches a path alone.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// each calls do with every sink, and gives up on those that fail.
func (t *Tracker) each(do func(sink) error) {
	for _, tool := range t.tools {
		s := t.sinks[tool]
		if s == nil {
			continue
		}
		if err := do(s); err != nil {
			delete(t.sinks, tool)
			t.fail(tool, errors.Join(err, s.close("")))
		}
	}
}

func (t *Tracker) fail(tool string, err error) {
	err = fmt.Errorf("%s: %w", tool, err)
	t.failed = errors.Join(t.failed, err)
	if len(t.sinks) > 0 || t.live { // else the command ends with the error
		t.header.logger.Warn("figures for a tool are no longer written", "error", err)
	}
}

// settingName is what a name in a configuration looks like. Others are left out: a name
// becomes the name of a file.
var settingName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,99}$`)

// parameters returns the settings in a configuration.
func parameters(config string) map[string]string {
	var values map[string]any
	if yaml.Unmarshal([]byte(config), &values) != nil {
		return nil
	}
	all := map[string]string{}
	for name, value := range values {
		if text := fmt.Sprint(value); settingName.MatchString(name) && len(text) <= 500 {
			all[name] = strings.ToValidUTF8(text, "?")
		}
	}
	return all
}
