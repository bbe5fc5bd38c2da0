// Package saved reads the settings of a run that has begun.
//
// It owns the comparison of the configuration file in a run directory with run.started in
// the log. The log defines the run. The file may change settings of the machine, and
// settings that a resume may change. A damaged file is written again from the log.
//
// It must not know the settings: a Kind reads them. Start reading at Kind.Read.
package saved

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codea1/events"
	"codea1/events/commandline"
	"codea1/events/rundir"
	"codea1/events/settings"
)

// ErrNoSettings says that a directory has neither a configuration that can be used
// nor a run.started in its log.
var ErrNoSettings = errors.New("neither the configuration nor the log says what the run is")

// FromBus is the remedy for ErrNoSettings.
const FromBus = "`codea1 replay rebuild RUN NEW --from-bus BUS` makes both again from the bus; move them from NEW into the run directory"

// Run is the directory of a run that has begun.
type Run struct {
	Dir    string
	Name   string // of the run in its log; empty without a run.started
	Damage error  // of the configuration file; nil if it can be used
}

// CheckName refuses to continue a run in a directory with another name: the bus would
// have no event of a run with that name. Reading such a run is possible.
func (b *Run) CheckName() error {
	if b.Name == "" || b.Name == filepath.Base(b.Dir) {
		return nil
	}
	return fmt.Errorf("%s is the directory of the run %s, which was renamed or copied: give it the name %s again (in another directory, for --runs-dir), or continue it as a run of its own: `codea1 replay fork %s NEW`",
		b.Dir, b.Name, b.Name, commandline.Word(b.Dir))
}

// Kind is a type of settings. S has all settings of a configuration file.
type Kind[S any] struct {
	File    func(name string, text []byte) (*S, error) // reads a configuration file
	Started func(config string) (*S, error)            // reads the configuration of a run.started
	OfRun   func(*S) any                               // the settings that every run.started has, a part of S
}

// Read returns the settings of the run in a directory; nil without a configuration and
// without started. It refuses a configuration of another run. started is the log's newest
// run.started; nil for a log without one.
func (k Kind[S]) Read(dir string, started *events.RunStarted) (*S, *Run, error) {
	path := rundir.Config(dir)
	text, err := os.ReadFile(path)
	if info, statErr := os.Stat(path); statErr == nil && !info.Mode().IsRegular() {
		text, err = nil, nil // it has no keys: damaged
	}
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case missing && started == nil:
		return nil, nil, nil
	case missing:
		return k.byLog(dir, started, errors.New("it did not exist"))
	case err != nil:
		return nil, nil, fmt.Errorf("configuration: %w; make it readable, or delete it: the next start writes it again from the log", err)
	}
	if damage := k.damageOf(text, started); damage != nil {
		return k.byLog(dir, started, damage)
	}
	saved, err := k.File(path, text)
	if err != nil || started == nil {
		if started != nil {
			err = fmt.Errorf("%w; correct it, or delete the file: the next start writes it again from the log", err)
		}
		return saved, &Run{Dir: dir}, err
	}
	logged, err := k.Started(started.Config)
	if err != nil {
		return nil, nil, err
	}
	settings.Copy(logged, saved, settings.OfMachine)
	if why := Differing(k.OfRun(logged), k.OfRun(saved), settings.Fixed, func(key string) string { return key + " in " + path }); why != "" {
		return nil, nil, fmt.Errorf("%s, which cannot change: correct the file, or delete it: the next start writes it again from the log; a fork changes settings with --set", why)
	}
	return saved, &Run{Dir: dir}, nil
}

// byLog returns the run of a log when the configuration file cannot be used.
func (k Kind[S]) byLog(dir string, started *events.RunStarted, damage error) (*S, *Run, error) {
	if started == nil {
		return nil, nil, fmt.Errorf("%s is damaged: %w, and %s has no run.started: %w: %s", rundir.Config(dir), damage, rundir.Log(dir), ErrNoSettings, FromBus)
	}
	s, err := k.Started(started.Config)
	return s, &Run{Dir: dir, Damage: damage}, err
}

// Repair writes a configuration file again that could not be used, with the settings s as
// text. The old one stays
// beside it.
func (b *Run) Repair(s any, text string, logger *slog.Logger) error {
	if b.Damage == nil {
		return nil
	}
	path := rundir.Config(b.Dir)
	aside := path + ".damaged"
	if _, err := os.Lstat(path); err == nil {
		if err := errors.Join(os.RemoveAll(aside), os.Rename(path, aside)); err != nil {
			return fmt.Errorf("configuration: %w", err)
		}
	}
	if err := rundir.WriteFile(path, []byte(text), rundir.FileMode); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	var defaults []string
	for _, f := range settings.Fields(s) {
		if settings.OfMachine(&f) {
			defaults = append(defaults, f.Key)
		}
	}
	logger.Warn("the configuration of the run was damaged and is written again from the log; the settings of this machine have their defaults",
		"file", path, "damage", b.Damage, "defaults", strings.Join(defaults, " "))
	b.Damage = nil
	return nil
}

// damageOf returns an error about a text that is not a whole configuration file of a
// run. Such a file has every setting of the run that run.started has.
func (k Kind[S]) damageOf(text []byte, started *events.RunStarted) error {
	keys, err := settings.Keys(rundir.Config(""), text)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		return errors.New("it has no keys")
	}
	if started == nil {
		return nil
	}
	wanted, err := settings.Keys("in run.started", []byte(started.Config))
	if err != nil {
		return err
	}
	for _, f := range settings.Fields(k.OfRun(new(S))) { // run.started of a recorder has no others
		if slices.Contains(wanted, f.Key) && !slices.Contains(keys, f.Key) {
			return fmt.Errorf("it has no %s", f.Key)
		}
	}
	return nil
}

// Unchanged returns an error about the settings that differ from those that the run
// began with and cannot change. source returns the flag, variable or file that sets
// a key.
func Unchanged(begun, now any, source func(key string) string) error {
	if why := Differing(begun, now, settings.Fixed, source); why != "" {
		return fmt.Errorf("%s, which cannot change: leave it out, or start a new run", why)
	}
	return nil
}

// Differing describes the relevant settings that differ; empty for none.
func Differing(begun, now any, relevant func(*settings.Field) bool, source func(key string) string) string {
	var all []string
	for _, d := range settings.Differences(begun, now, relevant) {
		all = append(all, fmt.Sprintf("%s is %s, but the run was started with --%s %s", source(d.Is.Key), d.Is.Brief(), d.Was.Key, d.Was.Brief()))
	}
	return strings.Join(all, "; ")
}
