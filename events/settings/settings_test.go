package settings_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codea1/events/settings"
)

// oven is what a program would compose from the structs of its packages.
type oven struct {
	Name   string        `yaml:"name" help:"Name of the oven." default:"left" change:"never"`
	Heater heater        `embed:"" yaml:",inline" group:"Heat"`
	Door   time.Duration `yaml:"door" help:"Time that the door may be open." default:"5s" above:"0s" change:"resume" scope:"machine" group:"Safety"`
}

type heater struct {
	Degrees float64 `yaml:"degrees" help:"Temperature." default:"180" above:"0" max:"300"`
	Fans    int     `yaml:"fans" help:"Fans that run." default:"2" min:"1"`
	Mode    string  `yaml:"mode" help:"Where the heat comes from: top or all." default:"top" enum:"top,all"`
	Light   bool    `yaml:"light" help:"Switch the light on." group:"Comfort"`
}

func defaults(t *testing.T) *oven {
	t.Helper()
	o := new(oven)
	if err := settings.Defaults(o); err != nil {
		t.Fatal(err)
	}
	return o
}

func key(name string) string { return name }

func TestDefaultsAndText(t *testing.T) {
	want := &oven{Name: "left", Heater: heater{Degrees: 180, Fans: 2, Mode: "top"}, Door: 5 * time.Second}
	if diff := cmp.Diff(want, defaults(t)); diff != "" {
		t.Errorf("-want +defaults:\n%s", diff)
	}
	want.Name, want.Heater.Light, want.Heater.Degrees = `a "quoted": name, # longer than a line of YAML usually is, 123456789 123456789`, true, 1e-7
	var b strings.Builder
	if err := settings.Write(&b, want); err != nil {
		t.Fatal(err)
	}
	got := new(oven)
	if err := settings.Read("x.yaml", []byte(b.String()), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-written +read:\n%s", diff)
	}
}

func ExampleWrite() {
	o := new(oven)
	if err := settings.Defaults(o); err != nil {
		fmt.Println(err)
	}
	if err := settings.Write(os.Stdout, o); err != nil {
		fmt.Println(err)
	}
	// Output:
	// # Name of the oven.
	// name: left
	//
	// # ---- Heat
	// # Temperature.
	// degrees: 180
	// # Fans that run.
	// fans: 2
	// # Where the heat comes from: top or all.
	// mode: top
	//
	// # ---- Comfort
	// # Switch the light on.
	// light: false
	//
	// # ---- Safety
	// # Time that the door may be open.
	// door: 5s
}

func TestReadErrorsNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"\nfan: 3":              `configuration x:2: unknown key "fan" (did you mean "fans"?); ` + "`codea1 config` prints all keys",
		"zzz: 3":                `configuration x:1: unknown key "zzz"; ` + "`codea1 config` prints all keys",
		"fans: 1\n\nfans: 2":    `configuration x:3: fans is set twice`,
		"fans: many":            `configuration x:1: fans is "many"; want a whole number`,
		"light: 1\ndegrees: x":  `configuration x:1: light is "1"; want true or false`,
		"degrees: hot":          `configuration x:1: degrees is "hot"; want a number`,
		"door: 5":               `configuration x:1: door is "5"; want a time such as 30s or 5m`,
		"fans: [1]":             `configuration x:1: fans: want one value`,
		"name:":                 `configuration x:1: name: want one value`,
		"fans: 0":               `configuration x:1: fans is 0; want 1 or more`,
		"degrees: 301":          `configuration x:1: degrees is 301; want more than 0, at most 300`,
		"degrees: .nan":         `configuration x:1: degrees is NaN; want more than 0, at most 300`,
		"door: 0s":              `configuration x:1: door is 0s; want more than 0s`,
		"mode: side":            `configuration x:1: mode is "side"; want one of top, all`,
		"<<: {fans: 0}":         `configuration x:1: unknown key "<<"; ` + "`codea1 config` prints all keys",
		"fans: 3\n? [a]\n: 1":   `configuration x:2: unknown key ""; ` + "`codea1 config` prints all keys",
		"fans: 3\n---\nfans: 4": "configuration x:2: a second document; want one",
		"- fans":                "configuration x:1: want `key: value` lines",
	} {
		if err := settings.Read("x", []byte(text), defaults(t)); err == nil || err.Error() != want {
			t.Errorf("%q: have %v\nwant %s", text, err, want)
		}
	}
	if err := settings.Read("x", []byte("# nothing\n"), defaults(t)); err != nil {
		t.Errorf("an empty file: %v", err)
	}
}

func TestSet(t *testing.T) {
	o := defaults(t)
	for k, v := range map[string]string{"name": "null", "fans": "7", "door": "1m", "light": "true", "mode": "all"} {
		if err := settings.Set(o, k, v); err != nil {
			t.Errorf("%s=%s: %v", k, v, err)
		}
	}
	want := &oven{Name: "null", Heater: heater{Degrees: 180, Fans: 7, Mode: "all", Light: true}, Door: time.Minute}
	if diff := cmp.Diff(want, o); diff != "" {
		t.Errorf("-want +set:\n%s", diff)
	}
	for k, v := range map[string]string{"fan": "3", "fans": "x", "mode": "side", "degrees": "0"} {
		if err := settings.Set(o, k, v); err == nil || !strings.Contains(err.Error(), k) {
			t.Errorf("%s=%s: %v", k, v, err)
		}
	}
}

func TestCheck(t *testing.T) {
	o := defaults(t)
	if err := settings.Check(o, key); err != nil {
		t.Error(err)
	}
	o.Heater.Degrees = math.NaN()
	if err := settings.Check(o, strings.ToUpper); err == nil || err.Error() != "DEGREES is NaN; want more than 0, at most 300" {
		t.Error(err)
	}
}

func TestDifferencesAndCopy(t *testing.T) {
	a, b := defaults(t), defaults(t)
	b.Door, b.Heater.Fans, b.Heater.Light = time.Minute, 3, true
	notOnResume := func(f *settings.Field) bool { return f.Change != settings.ChangeResume }
	var found []string
	for _, d := range settings.Differences(a, b, notOnResume) {
		found = append(found, fmt.Sprintf("%s was %s, is %s", d.Was.Key, d.Was, d.Is))
	}
	if diff := cmp.Diff([]string{"fans was 2, is 3", "light was false, is true"}, found); diff != "" {
		t.Errorf("-want +found:\n%s", diff)
	}
	settings.Copy(b, &a.Heater, notOnResume)
	if left := settings.Differences(a, b, notOnResume); len(left) > 0 || b.Door != time.Minute {
		t.Errorf("after a copy: %+v", b)
	}
}

func TestKeys(t *testing.T) {
	for text, want := range map[string][]string{"": nil, "# c\n": nil, "fans: 3\n\ndoor: 5s\n": {"fans", "door"}} {
		if got, err := settings.Keys("x", []byte(text)); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"fans", "fans: 3\ndoo", "- fans", "\x00\x00"} {
		if got, err := settings.Keys("x", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), "configuration x:") {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// Resolve puts the environment above the base and the base above the defaults.
func TestResolve(t *testing.T) {
	t.Setenv("OVEN_FANS", "5")
	base := defaults(t)
	base.Heater.Fans, base.Heater.Degrees, base.Name = 4, 200, ""
	var got oven
	if err := settings.Resolve(&got, base, "OVEN_"); err != nil {
		t.Fatal(err)
	}
	want := *base
	want.Heater.Fans = 5
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +resolved:\n%s", diff)
	}
	t.Setenv("OVEN_FANS", "many")
	if err := settings.Resolve(new(oven), base, "OVEN_"); err == nil || !strings.Contains(err.Error(), `OVEN_FANS="many"`) {
		t.Errorf("a wrong variable: %v", err)
	}
}
