package gpuworker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codea1/events"
)

// Placement puts a version of a role's policy where another run, or the same
// run on another bus, goes on from it.
type Placement struct {
	From     string // folder of the role's checkpoints it is taken from
	To       string // folder it is put into; may be From
	FromRun  string // run that made it
	Run      string // run that goes on from it
	Role     events.Role
	Version  int // from 1
	Position events.Position
}

// Place puts a version into the folder To, whole or not at all. Every byte is
// checked first. Weights and optimizer state are shared with From by links
// where the file system has them (nothing writes to a checkpoint again); the
// trainer's run and position are the new ones.
func (p *Placement) Place(ctx context.Context) error {
	from := checkpoints{folder: p.From, run: p.FromRun, role: p.Role}
	to := checkpoints{folder: p.To, run: p.Run, role: p.Role}
	if err := recoverPlaced(p.From, p.Version); err != nil {
		return err
	}
	record, err := from.read(ctx, p.Version)
	if err != nil {
		return err
	}
	record.Run, record.Position = p.Run, string(p.Position)
	temporary := filepath.Join(p.To, temporaryPrefix+versionName(p.Version))
	err = errors.Join(os.RemoveAll(temporary), os.MkdirAll(temporary, 0o755))
	if err == nil {
		err = copyCheckpoint(from.dir(p.Version), temporary)
	}
	if err == nil {
		err = reseal(ctx, record, temporary)
	}
	if err == nil {
		err = to.replace(temporary, p.Version)
	}
	if err != nil {
		return fmt.Errorf("place checkpoint %s: %w", to.dir(p.Version), errors.Join(err, os.RemoveAll(temporary)))
	}
	return nil
}

// Versions returns the complete versions in a folder of a role's checkpoints,
// in ascending order, and none for a folder that is missing.
func Versions(folder string) ([]int, error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("checkpoints: %w", err)
	}
	var versions []int
	for _, e := range entries {
		v, ok := parseVersion(strings.TrimPrefix(e.Name(), replacedPrefix))
		if ok && v > 0 && e.IsDir() {
			versions = append(versions, v)
		}
	}
	slices.Sort(versions)
	return slices.Compact(versions), nil
}

// RemoveVersion deletes a version from a folder of a role's checkpoints.
func RemoveVersion(folder string, version int) error {
	if err := recoverPlaced(folder, version); err != nil {
		return err
	}
	c := checkpoints{folder: folder}
	temporary := filepath.Join(folder, temporaryPrefix+versionName(version))
	if err := os.Rename(c.dir(version), temporary); err != nil {
		return fmt.Errorf("checkpoints: %w", err)
	}
	return os.RemoveAll(temporary)
}

// PlaceInitial puts a copy of version 0 from one directory into another, whole
// or not at all.
func PlaceInitial(from, to string) error {
	temporary := filepath.Join(filepath.Dir(to), temporaryPrefix+filepath.Base(to))
	err := errors.Join(os.RemoveAll(temporary), os.MkdirAll(temporary, 0o755))
	if err == nil {
		err = copyCheckpoint(from, temporary)
	}
	if err == nil {
		err = os.Rename(temporary, to)
	}
	if err != nil {
		return fmt.Errorf("place checkpoint %s: %w", to, errors.Join(err, os.RemoveAll(temporary)))
	}
	return syncPath(filepath.Dir(to))
}

// replacedPrefix names a version while the one that takes its place moves in.
// A kill in between leaves it, and recoverPlaced gives it its name back.
const replacedPrefix = ".replaced-"

func recoverPlaced(folder string, version int) error {
	c := checkpoints{folder: folder}
	replaced := filepath.Join(folder, replacedPrefix+versionName(version))
	if _, err := os.Stat(replaced); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := os.Stat(c.dir(version)); err == nil {
		return os.RemoveAll(replaced) // the new one is in place
	}
	return os.Rename(replaced, c.dir(version))
}

// replace gives a whole directory the name of a version.
func (c *checkpoints) replace(temporary string, version int) error {
	dir, replaced := c.dir(version), filepath.Join(c.folder, replacedPrefix+versionName(version))
	if err := os.Rename(dir, replaced); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(temporary, dir); err != nil {
		return err
	}
	return errors.Join(syncPath(c.folder), os.RemoveAll(replaced))
}

// copyCheckpoint fills a directory with the files of a checkpoint, all but those
// that reseal writes anew.
func copyCheckpoint(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil || name == "." || name == trainerFile || name == sumsFile {
			return err
		}
		target := filepath.Join(to, name)
		if e.IsDir() {
			return os.Mkdir(target, 0o755)
		}
		if os.Link(path, target) == nil {
			return nil
		}
		return copyFile(path, target)
	})
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// reseal is seal for a directory whose weights are those the record says.
func reseal(ctx context.Context, r *trainerRecord, dir string) error {
	saved := r.WeightsSHA256
	if err := (&checkpoints{}).seal(ctx, r, dir); err != nil {
		return err
	}
	if r.WeightsSHA256 != saved {
		return fmt.Errorf("%s has SHA-256 %s, but %s says %s", weightsFile, r.WeightsSHA256, trainerFile, saved)
	}
	return nil
}
