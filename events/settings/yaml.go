package settings

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Read sets the settings that a text in YAML names: a flat map of keys to single
// values. The others stay as they are. An error names the text and the line.
func Read(name string, text []byte, s any) error {
	root, err := parse(name, text)
	if err != nil || root == nil {
		return err
	}
	fields := Fields(s)
	for i := 0; i < len(root.Content); i += 2 {
		// The merge key << would set settings past the checks below.
		if key := root.Content[i]; key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
			return fmt.Errorf("configuration %s:%d: unknown key %q; `codea1 config` prints all keys", name, key.Line, key.Value)
		}
	}
	var wrong *yaml.LoadErrors
	if err := root.Load(s, yaml.WithKnownFields()); errors.As(err, &wrong) && len(wrong.Errors) > 0 {
		return fmt.Errorf("configuration %s:%w", name, explain(wrong.Errors[0], root, fields))
	} else if err != nil {
		return fmt.Errorf("configuration %s: %w", name, err)
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		f, _ := find(fields, key.Value)
		if value.ShortTag() == "!!null" {
			return fmt.Errorf("configuration %s:%d: %s: want one value", name, key.Line, f.Key)
		}
		if err := f.check(); err != nil {
			return fmt.Errorf("configuration %s:%d: %s %w", name, key.Line, f.Key, err)
		}
	}
	return nil
}

// parse returns the map in a text; nil for an empty text.
func parse(name string, text []byte) (*yaml.Node, error) {
	var document, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	err := decoder.Decode(&document)
	if err == nil {
		if err = decoder.Decode(&second); err == nil {
			return nil, fmt.Errorf("configuration %s:%d: a second document; want one", name, second.Line)
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("configuration %s: %w", name, err)
	}
	if len(document.Content) == 0 {
		return nil, nil
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("configuration %s:%d: want `key: value` lines", name, root.Line)
	}
	return root, nil
}

// Keys returns the keys that a text in YAML sets. The error says that the text is
// not a map.
func Keys(name string, text []byte) ([]string, error) {
	root, err := parse(name, text)
	if err != nil || root == nil {
		return nil, err
	}
	var keys []string
	for i := 0; i < len(root.Content); i += 2 {
		keys = append(keys, root.Content[i].Value)
	}
	return keys, nil
}

// explain describes an error of the YAML library by the key that it is about. The
// result begins with the line.
func explain(refused *yaml.LoadError, root *yaml.Node, fields []Field) error {
	seen := map[string]bool{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		twice := seen[key.Value]
		seen[key.Value] = true
		if refused.Mark.Line != key.Line && refused.Mark.Line != value.Line {
			continue
		}
		f, known := find(fields, key.Value)
		switch {
		case !known:
			return fmt.Errorf("%d: unknown key %q%s; `codea1 config` prints all keys", key.Line, key.Value, suggestion(key.Value, fields))
		case twice:
			return fmt.Errorf("%d: %s is set twice", key.Line, f.Key)
		case value.Kind != yaml.ScalarNode:
			return fmt.Errorf("%d: %s: want one value", key.Line, f.Key)
		default:
			return fmt.Errorf("%d: %w", value.Line, f.mismatch(refused, value.Value))
		}
	}
	return fmt.Errorf("%d: %s", refused.Mark.Line, refused.Message)
}

// mismatch returns the error for a text that is not a value of the setting.
func (f *Field) mismatch(refused *yaml.LoadError, text string) error {
	if _, ok := f.value.Addr().Interface().(encoding.TextUnmarshaler); ok && refused.Unwrap() != nil {
		return fmt.Errorf("%s: %w", f.Key, refused.Unwrap())
	}
	return fmt.Errorf("%s is %q; want %s", f.Key, text, f.kind())
}

// suggestion names the key that begins most like an unknown one.
func suggestion(unknown string, fields []Field) string {
	best, length := "", 2
	for _, f := range fields {
		n := 0
		for n < len(unknown) && n < len(f.Key) && unknown[n] == f.Key[n] {
			n++
		}
		if n > length {
			best, length = f.Key, n
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// set sets the setting to the value of a text.
func (f *Field) set(text string) error {
	if text == "" {
		f.value.SetZero()
		return nil
	}
	scalar := yaml.Node{Kind: yaml.ScalarNode, Value: text}
	if f.value.Kind() == reflect.String {
		scalar.SetString(text)
	}
	var wrong *yaml.LoadErrors
	if err := scalar.Load(f.value.Addr().Interface()); errors.As(err, &wrong) && len(wrong.Errors) > 0 {
		return f.mismatch(wrong.Errors[0], text)
	} else if err != nil {
		return fmt.Errorf("%s: %w", f.Key, err)
	}
	return nil
}

// Set sets one setting to the value of a text.
func Set(s any, key, text string) error {
	fields := Fields(s)
	f, ok := find(fields, key)
	if !ok {
		return fmt.Errorf("unknown key %q%s", key, suggestion(key, fields))
	}
	if err := f.set(text); err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return fmt.Errorf("%s %w", key, err)
	}
	return nil
}

// Write writes all settings as YAML, each below its help as a comment.
func Write(w io.Writer, s any) error {
	var b strings.Builder
	group := ""
	for _, f := range Fields(s) {
		if f.Group != group {
			group = f.Group
			fmt.Fprintf(&b, "\n# ---- %s\n", group)
		}
		value, err := yaml.Dump(f.value.Interface(), yaml.WithLineWidth(-1))
		if err != nil {
			return fmt.Errorf("configuration key %s: %w", f.Key, err)
		}
		fmt.Fprintf(&b, "# %s\n%s: %s", f.Help, f.Key, value)
	}
	_, err := io.WriteString(w, strings.TrimLeft(b.String(), "\n"))
	return err
}
