package experiment

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"codea1/events"
	"codea1/events/files"
)

// Example is a file with the baselines and ablations of the paper.
//
//go:embed example.yaml
var Example string

const (
	maxFileBytes = 1 << 20
	maxRuns      = 1000
	// presetKey names presets, like the flag of train.
	presetKey = "preset"
	// testsOfKey and testsOfStepKey name the runs that an arm has its tests from.
	testsOfKey     = "tests-of"
	testsOfStepKey = "tests-of-step"
)

// Matrix is the content of a file: every arm is run with every seed.
type Matrix struct {
	Name     string // of the file, without its extension
	About    string // text for the results
	Baseline string // the arm that the others are compared with
	Seeds    []uint64
	Arms     []Arm

	Evaluations []Evaluation
}

// arm returns the arm with a name; nil if there is none.
func (m *Matrix) arm(name string) *Arm {
	for i := range m.Arms {
		if m.Arms[i].Name == name {
			return &m.Arms[i]
		}
	}
	return nil
}

// Arm is a configuration.
type Arm struct {
	Name     string
	Preset   string // empty for the default
	Settings []Setting
	Tests    Tests
	place    string
}

// Setting is a setting of train.
type Setting struct {
	Key, Value string
	place      string // in the file
}

// Wrong returns an error about the setting, with its place in the file.
func (s *Setting) Wrong(err error) error { return fmt.Errorf("%s: %w", s.place, err) }

// Wrong returns an error about the arm, with its place in the file.
func (a *Arm) Wrong(err error) error { return fmt.Errorf("%s: %w", a.place, err) }

// ReadFile reads the file of an experiment.
func ReadFile(path string) (*Matrix, error) {
	text, err := readFile(path, maxFileBytes)
	if err != nil {
		return nil, err
	}
	return parse(path, text)
}

// readFile reads a file of limited size.
func readFile(path string, most int64) ([]byte, error) {
	file, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("%s: more than %d bytes", path, most)
	}
	return text, nil
}

// parser reads the nodes of a file. It reads no anchors, so that a small file is a
// small matrix.
type parser struct{ path string }

func (p *parser) wrong(at *yaml.Node, field, format string, args ...any) error {
	return fmt.Errorf("%s: %w", p.place(at, field), fmt.Errorf(format, args...))
}

func (p *parser) place(at *yaml.Node, field string) string {
	return fmt.Sprintf("%s:%d: %s", p.path, at.Line, field)
}

func parse(path string, text []byte) (*Matrix, error) {
	p := &parser{path}
	var document, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	err := decoder.Decode(&document)
	if err == nil {
		if err = decoder.Decode(&second); err == nil {
			return nil, fmt.Errorf("%s:%d: a second document; want one", path, second.Line)
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(document.Content) == 0 {
		return nil, fmt.Errorf("%s: it is empty; `codea1 experiment --example` prints an example", path)
	}
	m := &Matrix{Name: strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))}
	var common []*yaml.Node
	var arms, baseline *yaml.Node
	err = p.mapping(document.Content[0], "the file", func(key, value *yaml.Node) (err error) {
		switch key.Value {
		case "about":
			m.About, err = p.scalar(value, key.Value)
		case "baseline":
			baseline = value
			m.Baseline, err = p.scalar(value, key.Value)
		case "seeds":
			m.Seeds, err = p.seeds(value)
		case "settings":
			common = append(common, value)
		case "arms":
			arms = value
		case "evaluate":
			m.Evaluations, err = p.evaluations(value)
		default:
			err = p.wrong(key, key.Value, "unknown field; want about, seeds, baseline, settings, arms or evaluate")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(m.Seeds) == 0 || arms == nil {
		return nil, fmt.Errorf("%s: want the fields seeds and arms; `codea1 experiment --example` prints an example", path)
	}
	err = p.mapping(arms, "arms", func(key, value *yaml.Node) error {
		more, err := p.arm(key, append(slices.Clone(common), value))
		m.Arms = append(m.Arms, more...)
		if err == nil && len(m.Arms)*len(m.Seeds) > maxRuns {
			err = p.wrong(key, "arms", "more than %d runs", maxRuns)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return m, p.finish(m, arms, baseline)
}

// finish checks the names of the arms and of the baseline.
func (p *parser) finish(m *Matrix, arms, baseline *yaml.Node) error {
	if len(m.Arms) == 0 {
		return p.wrong(arms, "arms", "want at least one")
	}
	names := map[string]bool{}
	for i := range m.Arms {
		a := &m.Arms[i]
		if names[a.Name] {
			return a.Wrong(fmt.Errorf("two configurations have the name %s: rename one", a.Name))
		}
		names[a.Name] = true
		for _, seed := range m.Seeds {
			if err := events.ValidName(runName(a.Name, seed)); err != nil {
				return a.Wrong(err)
			}
		}
		if err := m.checkTests(a, names); err != nil {
			return err
		}
	}
	if baseline == nil {
		m.Baseline = m.Arms[0].Name
	} else if !names[m.Baseline] {
		return p.wrong(baseline, "baseline", "there is no configuration %q", m.Baseline)
	}
	return nil
}

func runName(arm string, seed uint64) string { return fmt.Sprintf("%s-s%d", arm, seed) }

// mapping calls visit with the keys and values of a map; none for an empty value.
func (p *parser) mapping(node *yaml.Node, field string, visit func(key, value *yaml.Node) error) error {
	if node.ShortTag() == "!!null" {
		return nil
	}
	if node.Kind != yaml.MappingNode {
		return p.wrong(node, field, "want `key: value` lines")
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if key.Kind != yaml.ScalarNode {
			return p.wrong(key, field, "want a name before the colon")
		}
		if seen[key.Value] {
			return p.wrong(key, field, "%s is set twice", key.Value)
		}
		seen[key.Value] = true
		if err := visit(key, node.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) scalar(node *yaml.Node, field string) (string, error) {
	if node.Kind != yaml.ScalarNode || node.ShortTag() == "!!null" {
		return "", p.wrong(node, field, "want one value")
	}
	return node.Value, nil
}

func (p *parser) seeds(node *yaml.Node) ([]uint64, error) {
	if node.Kind != yaml.SequenceNode {
		return nil, p.wrong(node, "seeds", "want a list such as [1, 2, 3]")
	}
	var seeds []uint64
	for _, each := range node.Content {
		text, err := p.scalar(each, "seeds")
		if err != nil {
			return nil, err
		}
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return nil, p.wrong(each, "seeds", "%q is no whole number, 0 or more", text)
		}
		if slices.Contains(seeds, seed) {
			return nil, p.wrong(each, "seeds", "%d occurs twice", seed)
		}
		seeds = append(seeds, seed)
	}
	return seeds, nil
}

// arm returns the arms that one entry of the file stands for: one for each
// combination of the values of its lists. Later layers override earlier ones.
func (p *parser) arm(name *yaml.Node, layers []*yaml.Node) ([]Arm, error) {
	place := func(key string) string { return "arms." + name.Value + "." + key }
	var keys []string
	nodes := map[string]*yaml.Node{}
	for _, layer := range layers {
		err := p.mapping(layer, "arms."+name.Value, func(key, value *yaml.Node) error {
			if nodes[key.Value] == nil {
				keys = append(keys, key.Value)
			}
			nodes[key.Value] = value
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	arms := []Arm{{Name: name.Value, place: p.place(name, "arms."+name.Value)}}
	for _, key := range keys {
		node := nodes[key]
		choices := []*yaml.Node{node}
		if node.Kind == yaml.SequenceNode {
			choices = node.Content
		}
		if len(choices) == 0 || len(choices)*len(arms) > maxRuns {
			return nil, p.wrong(node, place(key), "want 1 to %d values", maxRuns)
		}
		var more []Arm
		for i := range arms {
			for _, choice := range choices {
				value, err := p.scalar(choice, place(key))
				if err != nil {
					return nil, err
				}
				a := arms[i]
				if node.Kind == yaml.SequenceNode {
					a.Name += "-" + token(value)
				}
				switch key {
				case presetKey:
					a.Preset = value
				case testsOfKey:
					a.Tests.Of, a.Tests.place = value, p.place(choice, place(key))
				case testsOfStepKey:
					a.Tests.Step, a.Tests.stepPlace = value, p.place(choice, place(key))
				default:
					a.Settings = append(slices.Clone(a.Settings), Setting{key, value, p.place(choice, place(key))})
				}
				more = append(more, a)
			}
		}
		arms = more
	}
	return arms, nil
}

// token returns a text with _ for each symbol that a name of a run cannot have.
func token(text string) string {
	return strings.Map(func(r rune) rune {
		if events.ValidName(string(r)) != nil {
			return '_'
		}
		return r
	}, text)
}

// errNoFile is returned without a file.
var errNoFile = errors.New("name the file of the experiment; --example prints one")
