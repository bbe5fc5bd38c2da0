package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v4"
)

// envPrefix begins the name of every environment variable that sets a flag.
const envPrefix = "CODEA1_"

func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// layers resolves a flag that was not given on the command line: environment
// beats file beats the configuration of the run that goes on beats preset beats
// the flag's default.
type layers struct {
	path   string // of the file; empty for none
	file   map[string]string
	saved  map[string]string // configuration of a run that goes on; nil for a new one
	preset map[string]string
}

// given returns what the command line or the environment sets a flag to; empty
// for neither.
func given(ctx *kong.Context, flag string) string {
	for _, p := range ctx.Path {
		if p.Flag != nil && p.Flag.Name == flag {
			return fmt.Sprint(ctx.FlagValue(p.Flag))
		}
	}
	return os.Getenv(envName(flag))
}

// addLayers adds the layers below the command line for the flags of a run:
// those of a configuration file (empty for none) and of the run that goes on
// (nil for a new one).
func addLayers(ctx *kong.Context, path string, saved map[string]string) error {
	l := layers{path: path, saved: saved}
	if path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("configuration: %w", err)
		}
		if l.file, err = parseConfig(path, text, trainKeys(ctx)); err != nil {
			return err
		}
	}
	name := cmp.Or(given(ctx, "preset"), l.file["preset"], l.saved["preset"], defaultPreset)
	preset, ok := presets[name]
	if !ok {
		return fmt.Errorf("preset %q is unknown; there are: %s", name, strings.Join(slices.Sorted(maps.Keys(presets)), ", "))
	}
	l.preset = preset
	ctx.AddResolver(&l)
	return nil
}

// Validate implements kong.Resolver; parseConfig has checked the keys.
func (l *layers) Validate(*kong.Application) error { return nil }

// Resolve implements kong.Resolver.
func (l *layers) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if v, ok := os.LookupEnv(envName(flag.Name)); ok {
		return v, l.mayBe(flag, envName(flag.Name), v)
	}
	if v, ok := l.file[flag.Name]; ok {
		return v, l.mayBe(flag, fmt.Sprintf("%s in %s", flag.Name, l.path), v)
	}
	if v, ok := l.saved[flag.Name]; ok {
		return v, nil
	}
	if v, ok := l.preset[flag.Name]; ok {
		return v, nil
	}
	return nil, nil
}

// mayBe refuses a value that would make another run of the one that goes on;
// from says where it stands.
func (l *layers) mayBe(flag *kong.Flag, from, value string) error {
	saved, ok := l.saved[flag.Name]
	if !ok || slices.Contains(mayChange, flag.Name) {
		return nil
	}
	now, err := decode(flag, value)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	if was, err := decode(flag, saved); err != nil || was != now {
		return fmt.Errorf("%s is %s, but the run was started with --%s %s, which cannot change; unset it to go on with the run", from, value, flag.Name, saved)
	}
	return nil
}

// decode returns a flag's value as its field would hold it.
func decode(flag *kong.Flag, text string) (any, error) {
	target := reflect.New(flag.Target.Type()).Elem()
	err := flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: kong.ScanAsType(kong.FlagValueToken, text)}, target)
	return target.Interface(), err
}

// trainKeys are the flags of train that a configuration file may set.
func trainKeys(ctx *kong.Context) []*kong.Flag {
	var keys []*kong.Flag
	for _, node := range ctx.Model.Children {
		if node.Name != "train" {
			continue
		}
		for _, f := range node.Flags {
			if !slices.Contains(notInFile, f.Name) {
				keys = append(keys, f)
			}
		}
	}
	return keys
}

// notInFile are flags that make sense on the command line only: a file serves
// many runs, and a run is resumed by its name.
var notInFile = []string{"help", "config", "resume", "name"}

// parseConfig parses a flat YAML map of flag names to scalars. The error names
// the file, the line and the key.
func parseConfig(path string, text []byte, known []*kong.Flag) (map[string]string, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	values := map[string]string{}
	if len(doc.Content) == 0 {
		return values, nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("configuration %s:%d: want `key: value` lines", path, root.Line)
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		at := slices.IndexFunc(known, func(f *kong.Flag) bool { return f.Name == key.Value })
		if at < 0 {
			return nil, fmt.Errorf("configuration %s:%d: unknown key %q%s; `codea1 config` prints all keys", path, key.Line, key.Value, nearest(key.Value, known))
		}
		if value.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("configuration %s:%d: %s: want one value", path, value.Line, key.Value)
		}
		if _, twice := values[key.Value]; twice {
			return nil, fmt.Errorf("configuration %s:%d: %s is set twice", path, key.Line, key.Value)
		}
		if _, err := decode(known[at], value.Value); err != nil {
			return nil, fmt.Errorf("configuration %s:%d: %s: %w", path, value.Line, key.Value, err)
		}
		values[key.Value] = value.Value
	}
	return values, nil
}

// nearest suggests the known key that shares the longest beginning.
func nearest(key string, known []*kong.Flag) string {
	best, length := "", 2
	for _, f := range known {
		n := 0
		for n < len(key) && n < len(f.Name) && key[n] == f.Name[n] {
			n++
		}
		if n > length {
			best, length = f.Name, n
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// writeConfig writes every key with its help as a comment; value gives what
// each is set to.
func writeConfig(w io.Writer, keys []*kong.Flag, value func(*kong.Flag) string) error {
	var b strings.Builder
	group := ""
	for _, f := range keys {
		if f.Group != nil && f.Group.Title != group {
			group = f.Group.Title
			fmt.Fprintf(&b, "\n# ---- %s\n", group)
		}
		scalar, err := yaml.Marshal(yamlScalar(value(f)))
		if err != nil {
			return fmt.Errorf("configuration key %s: %w", f.Name, err)
		}
		fmt.Fprintf(&b, "# %s\n%s: %s", f.Help, f.Name, scalar)
	}
	_, err := io.WriteString(w, strings.TrimLeft(b.String(), "\n"))
	return err
}

// yamlScalar leaves numbers and booleans bare and has text quoted as needed.
func yamlScalar(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: s}
	if s == "" {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// ConfigCommand prints a configuration file.
type ConfigCommand struct {
	Preset string `help:"Whose values to print." default:"tiny" enum:"tiny,paper"`
}

// Run prints every key with its comment and the preset's value.
func (c *ConfigCommand) Run(ctx *kong.Context, out io.Writer) error {
	preset := presets[c.Preset]
	return writeConfig(out, trainKeys(ctx), func(f *kong.Flag) string {
		if f.Name == "preset" {
			return c.Preset
		}
		if v, ok := preset[f.Name]; ok {
			return v
		}
		if f.IsBool() && f.Default == "" {
			return "false"
		}
		return f.Default
	})
}
