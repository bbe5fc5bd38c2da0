package settings

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Layer makes the settings in a struct the defaults of the flags of the same
// names. What the environment or the command line gives goes before them.
func Layer(flags []*kong.Flag, s any) {
	for _, f := range Fields(s) {
		for _, flag := range flags {
			if flag.Name == f.Key {
				flag.Default, flag.HasDefault = f.String(), true
			}
		}
	}
}

// Environment lets environment variables set flags: the prefix, then the flag's
// name in capitals.
func Environment(flags []*kong.Flag, prefix string) {
	for _, flag := range flags {
		if len(flag.Envs) == 0 && flag.Name != "help" {
			flag.Envs = []string{Variable(prefix, flag.Name)}
			flag.Tag.Envs = flag.Envs
		}
	}
}

// Variable returns the environment variable of a flag.
func Variable(prefix, name string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// Resolve sets a struct without a command line: the environment goes before the
// base, a struct of the same type; without a base, before the defaults.
func Resolve(s, base any, prefix string) error {
	return kong.ApplyDefaults(s, kong.PostBuild(func(k *kong.Kong) error {
		if base != nil {
			Layer(k.Model.Flags, base)
		}
		Environment(k.Model.Flags, prefix)
		return nil
	}))
}

// Given returns what the command line or the environment gives for a flag, with
// where it stands there; found is false for neither.
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

// OnCommandLine reports whether the command line gives a flag.
func OnCommandLine(ctx *kong.Context, name string) bool {
	return slices.ContainsFunc(ctx.Path, func(p *kong.Path) bool { return p.Flag != nil && p.Flag.Name == name && !p.Resolved })
}
