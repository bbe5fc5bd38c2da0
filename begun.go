package main

import (
	"context"
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
	"codea1/replay/eventlog"
)

// begunRun is a run directory with the settings of its run. The log defines the
// run. The configuration file may change settings of the machine, and settings
// that a resume may change.
type begunRun struct {
	*Settings
	dir    string
	name   string // of the run in its log; empty without a run.started
	damage error  // of the configuration file; nil if it can be used
}

// errNoSettings says that a directory has neither a configuration that can be used
// nor a run.started in its log.
var errNoSettings = errors.New("neither the configuration nor the log says what the run is")

// fromBus is the remedy for errNoSettings.
const fromBus = "`codea1 replay rebuild RUN NEW --from-bus BUS` makes both again from the bus; move them from NEW into the run directory"

// openBegun returns the run in a directory; nil without a configuration and a log.
// It refuses a configuration of another run than that of the log.
func openBegun(ctx context.Context, dir string) (*begunRun, error) {
	started, name, err := lastStarted(ctx, dir)
	if err != nil {
		return nil, err
	}
	begun, err := readBegun(dir, started)
	if begun != nil {
		begun.name = name
	}
	return begun, err
}

// checkName refuses to continue a run in a directory with another name: the bus would
// have no event of a run with that name. Reading such a run is possible.
func (b *begunRun) checkName() error {
	if b == nil || b.name == "" || b.name == filepath.Base(b.dir) {
		return nil
	}
	return fmt.Errorf("%s is the directory of the run %s, which was renamed or copied: give it the name %s again (in another directory, for --runs-dir), or continue it as a run of its own: `codea1 replay fork %s NEW`",
		b.dir, b.name, b.name, commandline.Word(b.dir))
}

// readBegun returns the run in a directory. started is the log's newest
// run.started; nil for a log without one.
func readBegun(dir string, started *events.RunStarted) (*begunRun, error) {
	path := rundir.Config(dir)
	text, err := os.ReadFile(path)
	if info, statErr := os.Stat(path); statErr == nil && !info.Mode().IsRegular() {
		text, err = nil, nil // it has no keys: damaged
	}
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case missing && started == nil:
		return nil, nil
	case missing:
		return begunByLog(dir, started, errors.New("it did not exist"))
	case err != nil:
		return nil, fmt.Errorf("configuration: %w; make it readable, or delete it: the next start writes it again from the log", err)
	}
	if damage := damageOf(text, started); damage != nil {
		return begunByLog(dir, started, damage)
	}
	saved, err := readSettings(path, text, "")
	if err != nil || started == nil {
		if started != nil {
			err = fmt.Errorf("%w; correct it, or delete the file: the next start writes it again from the log", err)
		}
		return &begunRun{Settings: saved, dir: dir}, err
	}
	logged, err := startedSettings(started.Config)
	if err != nil {
		return nil, err
	}
	settings.Copy(logged, saved, isMachine)
	if why := differing(&logged.RunSettings, &saved.RunSettings, isFixed, func(key string) string { return key + " in " + path }); why != "" {
		return nil, fmt.Errorf("%s, which cannot change: correct the file, or delete it: the next start writes it again from the log; a fork changes settings with --set", why)
	}
	return &begunRun{Settings: saved, dir: dir}, nil
}

// begunByLog returns the run of a log when the configuration file cannot be used.
func begunByLog(dir string, started *events.RunStarted, damage error) (*begunRun, error) {
	if started == nil {
		return nil, fmt.Errorf("%s is damaged: %w, and %s has no run.started: %w: %s", rundir.Config(dir), damage, rundir.Log(dir), errNoSettings, fromBus)
	}
	s, err := startedSettings(started.Config)
	return &begunRun{Settings: s, dir: dir, damage: damage}, err
}

// repair writes a configuration file again that could not be used. The old one stays
// beside it.
func (b *begunRun) repair(logger *slog.Logger) error {
	if b.damage == nil {
		return nil
	}
	path := rundir.Config(b.dir)
	aside := path + ".damaged"
	if _, err := os.Lstat(path); err == nil {
		if err := errors.Join(os.RemoveAll(aside), os.Rename(path, aside)); err != nil {
			return fmt.Errorf("configuration: %w", err)
		}
	}
	text, err := configText(b.Settings, &b.Bus)
	if err == nil {
		err = rundir.WriteFile(path, []byte(text), rundir.FileMode)
	}
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	var defaults []string
	for _, f := range settings.Fields(b.Settings) {
		if isMachine(&f) {
			defaults = append(defaults, f.Key)
		}
	}
	logger.Warn("the configuration of the run was damaged and is written again from the log; the settings of this machine have their defaults",
		"file", path, "damage", b.damage, "defaults", strings.Join(defaults, " "))
	b.damage = nil
	return nil
}

// damageOf returns an error about a text that is not a whole configuration file of a
// run. Such a file has every setting of the run that run.started has.
func damageOf(text []byte, started *events.RunStarted) error {
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
	for _, f := range settings.Fields(new(RunSettings)) { // run.started of a recorder has no others
		if slices.Contains(wanted, f.Key) && !slices.Contains(keys, f.Key) {
			return fmt.Errorf("it has no %s", f.Key)
		}
	}
	return nil
}

// lastStarted returns the newest run.started in the log of a run directory; nil for
// none.
func lastStarted(ctx context.Context, dir string) (started *events.RunStarted, run string, err error) {
	log, err := eventlog.Open(rundir.Log(dir), eventlog.Options{ReadOnly: true})
	if errors.Is(err, eventlog.ErrNoLog) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	for record, err := range log.Read(ctx, eventlog.ReadOptions{Types: []events.Type{events.TypeRunStarted}}) {
		if err != nil {
			return nil, "", errors.Join(err, log.Close())
		}
		// An event that cannot be decoded says nothing about the run.
		if e, err := record.Decode(); err == nil {
			started, run = e.Payload.(*events.RunStarted), e.Run
		}
	}
	return started, run, log.Close()
}

// unchanged returns an error about the settings that differ from those that the run
// began with and cannot change. source returns the flag, variable or file that sets
// a key.
func unchanged(begun, now *RunSettings, source func(key string) string) error {
	if why := differing(begun, now, isFixed, source); why != "" {
		return fmt.Errorf("%s, which cannot change: leave it out, or start a new run", why)
	}
	return nil
}

// isFixed says that a resume cannot change a setting.
func isFixed(f *settings.Field) bool { return f.Change != settings.ChangeResume }

// differing describes the relevant settings that differ; empty for none.
func differing(begun, now *RunSettings, relevant func(*settings.Field) bool, source func(key string) string) string {
	var all []string
	for _, d := range settings.Differences(begun, now, relevant) {
		all = append(all, fmt.Sprintf("%s is %s, but the run was started with --%s %s", source(d.Is.Key), d.Is.Brief(), d.Was.Key, d.Was.Brief()))
	}
	return strings.Join(all, "; ")
}
