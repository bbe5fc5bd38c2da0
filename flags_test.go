package main

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

// No number and no time of any command may be negative, infinite or NaN: the error
// names the flag and its bounds. Seeds may be any number.
func TestFlagsOfAllCommandsAreBounded(t *testing.T) {
	t.Parallel()
	var cli CLI
	parser, err := newParser(&cli)
	if err != nil {
		t.Fatal(err)
	}
	commands, flags := 0, 0
	for _, leaf := range parser.Model.Leaves(false) {
		commands++
		var path []string
		for n := leaf; n.Type != kong.ApplicationNode; n = n.Parent {
			path = append([]string{n.Name}, path...)
		}
		for _, flag := range leaf.Flags {
			var wrong []string
			switch {
			case flag.Target.Type() == reflect.TypeFor[time.Duration]():
				wrong = []string{"-1s"}
			case flag.Target.CanFloat():
				wrong = []string{"-1", "inf", "-inf", "NaN"}
			case flag.Target.CanInt() && flag.Target.Type().PkgPath() == "":
				wrong = []string{"-1"}
			}
			for _, value := range wrong {
				flags++
				_, err := parser.Parse(append(path, "--"+flag.Name+"="+value))
				if err == nil || !strings.Contains(err.Error(), "--"+flag.Name+" ") || !strings.Contains(err.Error(), "want") {
					t.Errorf("%s --%s %s: %v", strings.Join(path, " "), flag.Name, value, err)
				}
			}
		}
	}
	if commands < 25 || flags < 200 {
		t.Errorf("only %d values of %d commands: is the list complete?", flags, commands)
	}
}

// A command that loses its results fails with an error about standard output.
func TestStandardOutputIsFull(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"version", "config", "problems list", "problems list --json", "problems show train-0001", "--help", "train --help"} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skip(err)
		}
		var stderr bytes.Buffer
		code := run(t.Context(), strings.Fields(args), full, &stderr)
		if err := full.Close(); err != nil {
			t.Fatal(err)
		}
		if sentence, err := oneSentence(stderr.String()); code != 1 || err != nil || !strings.Contains(sentence, "standard output: write /dev/full: no space left") {
			t.Errorf("%s: exit code %d, %s", args, code, &stderr)
		}
	}
}
