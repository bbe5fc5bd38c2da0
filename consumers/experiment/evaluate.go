package experiment

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"codea1/events"
)

// Evaluation is an evaluation of the last checkpoints of every run, by `codea1 eval`.
// An evaluation that needs a Test LLM is left out for runs without one. One
// configuration's runs are evaluated before training, too.
type Evaluation struct {
	Name      string
	Benchmark string
	Settings  []Setting // flags of codea1 eval

	place, benchmarkPlace string // in the file
}

const (
	benchmarkKey = "benchmark"
	roleKey      = "role"
	testModelKey = "test-model"
	// ownTestModel is the Test LLM of the run itself.
	ownTestModel = "run"
)

// evaluationKeys are the flags of codea1 eval that an evaluation may set.
var evaluationKeys = []string{roleKey, "samples", "tests", "rounds", testModelKey, "suites", "greedy", "temperature", "top-p", "code-tokens", "test-tokens", "mutants"}

// Wrong returns an error about the evaluation, with its place in the file.
func (e *Evaluation) Wrong(err error) error { return fmt.Errorf("%s: %w", e.place, err) }

// set returns the value of a setting; empty if the evaluation does not set it.
func (e *Evaluation) set(key string) string {
	for i := range e.Settings {
		if e.Settings[i].Key == key {
			return e.Settings[i].Value
		}
	}
	return ""
}

// needsTest reports whether the evaluation is one of the run's Test LLM.
func (e *Evaluation) needsTest() bool {
	return e.set(roleKey) == string(events.RoleTest) || e.set(testModelKey) == ownTestModel
}

// configuration returns the settings with the benchmark.
func (e *Evaluation) configuration() map[string]string {
	all := map[string]string{benchmarkKey: e.Benchmark}
	for i := range e.Settings {
		all[e.Settings[i].Key] = e.Settings[i].Value
	}
	return all
}

// caption returns the title of the evaluation's table.
func (e *Evaluation) caption() string {
	all := e.configuration()
	delete(all, benchmarkKey)
	parts := []string{e.Benchmark}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, key+" "+all[key])
	}
	return fmt.Sprintf("Evaluation %s: %s", e.Name, strings.Join(parts, ", "))
}

// evaluations reads the field evaluate.
func (p *parser) evaluations(node *yaml.Node) ([]Evaluation, error) {
	var all []Evaluation
	err := p.mapping(node, "evaluate", func(name, settings *yaml.Node) error {
		field := "evaluate." + name.Value
		e := Evaluation{Name: name.Value, place: p.place(name, field)}
		if err := events.ValidName(name.Value); err != nil {
			return e.Wrong(err)
		}
		err := p.mapping(settings, field, func(key, node *yaml.Node) error {
			at := field + "." + key.Value
			value, err := p.scalar(node, at)
			switch {
			case err != nil:
				return err
			case key.Value == benchmarkKey:
				e.Benchmark, e.benchmarkPlace = value, p.place(node, at)
			case slices.Contains(evaluationKeys, key.Value):
				e.Settings = append(e.Settings, Setting{key.Value, value, p.place(node, at)})
			default:
				return p.wrong(key, at, "unknown setting; want %s, %s", benchmarkKey, strings.Join(evaluationKeys, ", "))
			}
			return nil
		})
		if err == nil && e.Benchmark == "" {
			err = e.Wrong(errors.New("want the field benchmark"))
		}
		all = append(all, e)
		return err
	})
	return all, err
}

// args returns the command line of the evaluation of a run, without its name.
func (e *Evaluation) args(run string, seed uint64) []string {
	args := []string{"eval", run, e.Benchmark, "--json", "--seed", strconv.FormatUint(seed, 10)}
	for i := range e.Settings {
		key, value := e.Settings[i].Key, e.Settings[i].Value
		if key == testModelKey && value == ownTestModel {
			value = run
		}
		args = append(args, "--"+key+"="+value)
	}
	return args
}
