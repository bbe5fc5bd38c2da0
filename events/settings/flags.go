package settings

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Layer makes the settings in a struct the defaults of the flags with the same
// names. The environment and the command line override them.
func Layer(flags []*kong.Flag, s any) { SetDefaults(flags, Values(s)) }

// Values returns the settings in a struct by their keys, as a command line writes them.
func Values(s any) map[string]string {
	fields := Fields(s)
	values := make(map[string]string, len(fields))
	for i := range fields {
		values[fields[i].Key] = fields[i].String()
	}
	return values
}

// SetDefaults is Layer for the flags of several commands: it takes the result of Values.
func SetDefaults(flags []*kong.Flag, values map[string]string) {
	for _, flag := range flags {
		if value, ok := values[flag.Name]; ok {
			flag.Default, flag.HasDefault = value, true
		}
	}
}

// Environment lets environment variables set flags, besides --help and --version. A
// variable is named by the prefix and the name of the flag in capitals.
func Environment(flags []*kong.Flag, prefix string) {
	for _, flag := range flags {
		if len(flag.Envs) == 0 && flag.Name != "help" && flag.Name != "version" {
			flag.Envs = []string{Variable(prefix, flag.Name)}
			flag.Tag.Envs = flag.Envs
		}
	}
}

// Variable returns the environment variable of a flag.
func Variable(prefix, name string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// Resolve sets a struct from the environment and, for variables that are not set,
// from base, a struct of the same type. Without a base it takes the defaults.
func Resolve(s, base any, prefix string) error {
	return kong.ApplyDefaults(s, kong.PostBuild(func(k *kong.Kong) error {
		if base != nil {
			Layer(k.Model.Flags, base)
			for _, flag := range k.Model.Flags { // kong replaces ${NAME} in defaults after this
				flag.Default = strings.ReplaceAll(flag.Default, "$", "$$")
			}
		}
		Environment(k.Model.Flags, prefix)
		return nil
	}))
}

// Given returns the value of a flag on the command line or in the environment, and
// the flag or the variable that sets it. found is false when neither does.
func Given(ctx *kong.Context, name string) (value, source string, found bool) {
	for _, flag := range ctx.Flags() {
		if flag.Name != name {
			continue
		}
		if OnCommandLine(ctx, name) {
			return fmt.Sprint(ctx.FlagValue(flag)), "--" + name, true
		}
		for _, variable := range flag.Envs {
			if value, ok := os.LookupEnv(variable); ok {
				return value, variable, true
			}
		}
	}
	return "", "", false
}

// CheckFlags returns an error about the first flag of a command line or the
// environment with a value that is out of bounds or not finite. A flag has the same tags
// for bounds as a setting.
func CheckFlags(ctx *kong.Context) error {
	for _, flag := range ctx.Flags() {
		var bounds []string
		for _, tag := range []string{"min", "above", "max"} {
			if flag.Tag.Has(tag) {
				bounds = append(bounds, fmt.Sprintf("%s:%q", tag, flag.Tag.Get(tag)))
			}
		}
		f := Field{Key: flag.Name, value: flag.Target, tag: reflect.StructTag(strings.Join(bounds, " "))}
		if err := f.check(); err != nil {
			_, source, found := Given(ctx, flag.Name)
			if !found {
				source = "--" + flag.Name
			}
			return fmt.Errorf("%s %w", source, err)
		}
	}
	return nil
}

// OnCommandLine reports whether the command line gives a flag.
func OnCommandLine(ctx *kong.Context, name string) bool {
	return slices.ContainsFunc(ctx.Path, func(p *kong.Path) bool { return p.Flag != nil && p.Flag.Name == name && !p.Resolved })
}

// SourceOf returns a function for the source of a setting: the flag, the environment
// variable or the configuration file that sets a key.
func SourceOf(ctx *kong.Context) func(key string) string {
	return func(key string) string {
		if _, source, ok := Given(ctx, key); ok {
			return source
		}
		return key + " in " + GivenOr(ctx, "config", "the configuration")
	}
}

// ConfigFlag names a configuration file.
type ConfigFlag struct {
	Config string `help:"YAML file with any of these flags as keys; codea1 config prints one." placeholder:"FILE" type:"path"`
}

// File returns the path and the text of the configuration file that the
// command line or the environment names; no path for none.
func File(ctx *kong.Context) (path string, text []byte, err error) {
	path, _, _ = Given(ctx, "config")
	if path == "" {
		return "", nil, nil
	}
	if text, err = os.ReadFile(path); err != nil {
		return "", nil, fmt.Errorf("configuration: %w", err)
	}
	return path, text, nil
}

// GivenOr returns the value of a flag on the command line or in the environment,
// or else a default.
func GivenOr(ctx *kong.Context, flag, otherwise string) string {
	if value, _, ok := Given(ctx, flag); ok {
		return value
	}
	return otherwise
}
