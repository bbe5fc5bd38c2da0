package rewards

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"
)

// maxRecipeBytes bounds a recipe file. A usual one has a few hundred bytes.
const maxRecipeBytes = 64 << 10

// ParseFormula reads a recipe file: a YAML map of the fields of RECIPE.md, all
// of them optional. Errors name the file and the line.
func ParseFormula(file string, text []byte) (Formula, error) {
	fail := func(line int, err error) (Formula, error) {
		return Formula{}, fmt.Errorf("recipe %s:%d: %w", file, line, err)
	}
	if len(text) > maxRecipeBytes {
		return Formula{}, fmt.Errorf("recipe %s: %w: over the limit of %d bytes", file, ErrFormula, maxRecipeBytes)
	}
	var doc, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	err := decoder.Decode(&doc)
	if err == nil {
		if err = decoder.Decode(&second); err == nil {
			return fail(second.Line, fmt.Errorf("%w: a second document; want one", ErrFormula))
		}
	}
	if !errors.Is(err, io.EOF) {
		return Formula{}, fmt.Errorf("recipe %s: %w: %w", file, ErrFormula, err)
	}
	f := PaperFormula()
	if len(doc.Content) == 0 {
		return f, nil // only comments
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return fail(root.Line, fmt.Errorf("%w: want `field: value` lines", ErrFormula))
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		field, err := fieldNamed(key.Value)
		if err != nil {
			return fail(key.Line, err)
		}
		if seen[key.Value] {
			return fail(key.Line, badField(key.Value, "is set twice"))
		}
		seen[key.Value] = true
		text, err := fieldText(field.name, value)
		if err == nil {
			err = field.set(&f, text)
		}
		if err != nil {
			return fail(value.Line, err)
		}
	}
	return f, nil
}

// fieldText returns a value in the notation of a formula's name.
func fieldText(name string, value *yaml.Node) (string, error) {
	if name != fieldDifficulty {
		if value.Kind != yaml.ScalarNode {
			return "", badField(name, "wants one value")
		}
		return value.Value, nil
	}
	if value.Kind != yaml.SequenceNode || len(value.Content) == 0 {
		return "", badField(name, "wants a list of bands, each with up_to and weight")
	}
	var parts []string
	for _, band := range value.Content {
		var upTo, weight string
		for i := 0; i+1 < len(band.Content); i += 2 {
			switch band.Content[i].Value {
			case "up_to":
				upTo = band.Content[i+1].Value
			case "weight":
				weight = band.Content[i+1].Value
			default:
				return "", badField(name, "has a band with %q; want up_to and weight", band.Content[i].Value)
			}
		}
		if band.Kind != yaml.MappingNode || upTo == "" || weight == "" {
			return "", badField(name, "has a band without up_to and weight")
		}
		parts = append(parts, upTo+":"+weight)
	}
	return strings.Join(parts, "|"), nil
}
