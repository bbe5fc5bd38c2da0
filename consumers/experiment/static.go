package experiment

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"

	"codea1/events/rundir"
)

// Tests says that the runs of an arm are trained on the tests that the run of another
// arm with the same seed has written: static supervision. These tests are the golden
// tests of the problems that they are about.
type Tests struct {
	Of   string // name of the other arm; empty: the problem set has its own tests
	Step string // only tests of these steps: N or N-M; empty for all

	place, stepPlace string // in the file
}

var stepRange = regexp.MustCompile(`^[0-9]{1,9}(-[0-9]{1,9})?$`)

// checkTests checks the source of an arm's tests. before has the names of the arms up
// to this one: a source is trained first.
func (m *Matrix) checkTests(a *Arm, before map[string]bool) error {
	of := &a.Tests
	wrong := func(place, format string, args ...any) error {
		return fmt.Errorf("%s: %w", place, fmt.Errorf(format, args...))
	}
	switch {
	case of.Of == "" && of.Step != "":
		return wrong(of.stepPlace, "%s needs %s", testsOfStepKey, testsOfKey)
	case of.Of == "":
		return nil
	case of.Of == a.Name || !before[of.Of]:
		return wrong(of.place, "there is no configuration %q above this one", of.Of)
	case m.arm(of.Of).Tests.Of != "":
		return wrong(of.place, "%s has its tests from %s: name that one", of.Of, m.arm(of.Of).Tests.Of)
	case of.Step != "" && !stepRange.MatchString(of.Step):
		return wrong(of.stepPlace, "%q is neither a step nor a range such as 61-90", of.Step)
	}
	return nil
}

// link gives the runs the runs that they have their tests from.
func link(runs []*Run) {
	byName := map[string]*Run{}
	for _, r := range runs {
		byName[r.Name] = r
		if of := r.Arm.Tests.Of; of != "" {
			r.source = byName[runName(of, r.Seed)]
		}
	}
}

// needSources marks the recorded runs that are trained again, because other runs need
// the tests in their logs.
func needSources(runs []*Run) error {
	for _, r := range runs {
		if r.source == nil || r.recorded != nil || r.source.recorded == nil {
			continue
		}
		_, err := os.Stat(r.problems())
		switch {
		case errors.Is(err, fs.ErrNotExist):
			r.source.again = true
		case err != nil:
			return fmt.Errorf("run %s: %w", r.Name, err)
		}
	}
	return nil
}

// problems returns the file with the problems and tests of a run that has a source.
func (r *Run) problems() string { return r.inExperiment("problems", r.Name+".jsonl") }

// export writes the problems of a run that has a source, which is trained first. The
// file appears when it is complete.
func (r *Run) export(ctx context.Context, host Host, output *os.File, say func(format string, args ...any)) error {
	path := r.problems()
	if _, err := os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	record, err := r.source.complete(ctx, host, func(format string, args ...any) {
		say("needs the tests of %s, which %s", r.source.Name, fmt.Sprintf(format, args...))
	})
	if err != nil {
		return fmt.Errorf("its tests are those of %s: %w", r.source.Name, err)
	}
	if record.recorded != nil {
		return fmt.Errorf("its tests are in the log of %s, which is only recorded", r.source.Name)
	}
	if err := os.MkdirAll(filepath.Dir(path), rundir.DirMode); err != nil {
		return err
	}
	args := []string{"replay", "export", r.source.dir, "--table", "golden", "--out", path}
	if step := r.Arm.Tests.Step; step != "" {
		args = append(args, "--step", step)
	}
	command, err := child(ctx, args, output)
	if err != nil {
		return err
	}
	if err := command.Run(); err != nil {
		return r.why(output, err)
	}
	return nil
}

// withSource adds the configuration of the source to that of an arm that has its tests
// from it: a change of either gives other results.
func (id *Identity) withSource(of *Tests, source *Identity) *Identity {
	both := &Identity{Settings: maps.Clone(id.Settings), Defaults: maps.Clone(id.Defaults), Heldout: id.Heldout}
	both.Settings[testsOfKey], both.Settings[testsOfStepKey] = of.Of, of.Step
	for key, value := range source.Settings {
		both.Settings[testsOfKey+" "+key] = value
	}
	for key, value := range source.Defaults {
		both.Defaults[testsOfKey+" "+key] = value
	}
	both.Settings[testsOfKey+" problems SHA-256"] = source.Problems
	return both
}
