package checkpoint

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"codea1/events"
)

// Objects is the part of a store of files that a Remote uses; package objects has
// two.
type Objects interface {
	Put(ctx context.Context, key, file string) error
	Get(ctx context.Context, key string, offset int64) (io.ReadCloser, error)
	List(ctx context.Context, dir string) ([]string, error)
	Remove(ctx context.Context, key string) error
}

// Remote keeps the versions of one role in a store, for processes on machines that
// do not share the run directory.
//
// A copy of a version is a directory. Its name has the hash of its SHA256SUMS,
// which is uploaded last. So a cut upload is no version, two trainers never mix
// their files, and a copy proves itself. The names of all objects derive from run,
// role and version, never from the URI in an event.
//
// Every method outlives an outage of the store: it tries again until ctx ends.
type Remote struct {
	Objects Objects
	Run     string
	Role    events.Role
	Cache   string // folder of downloads on this machine, for this role only
	// Confirm is called before a version becomes visible; nil permits it. A trainer
	// that lost its lease must not upload.
	Confirm func(context.Context) error
	Logger  *slog.Logger
}

func (r *Remote) dir() string { return path.Join(r.Run, "checkpoints", string(r.Role)) }

// storedCopy is a directory of the store.
type storedCopy struct {
	version  int
	name     string // v000012- and a part of the hash of its SHA256SUMS
	complete bool
}

func copyName(version int, sums []byte) string {
	sum := sha256.Sum256(sums)
	return fmt.Sprintf("%s-%x", versionName(version), sum[:8])
}

// copies returns the copies in the store, in the order of their versions.
func (r *Remote) copies(ctx context.Context) ([]storedCopy, error) {
	var keys []string
	err := r.retry(ctx, "list", func() (err error) {
		keys, err = r.Objects.List(ctx, r.dir())
		return err
	})
	if err != nil {
		return nil, err
	}
	byName := map[string]storedCopy{}
	for _, key := range keys {
		name, file, _ := strings.Cut(strings.TrimPrefix(key, r.dir()+"/"), "/")
		digits, _, _ := strings.Cut(name, "-")
		version, ok := parseVersion(digits)
		if !ok {
			continue
		}
		byName[name] = storedCopy{version, name, byName[name].complete || file == sumsFile}
	}
	all := slices.Collect(maps.Values(byName))
	slices.SortFunc(all, func(a, b storedCopy) int {
		if a.version != b.version {
			return a.version - b.version
		}
		return strings.Compare(a.name, b.name)
	})
	return all, nil
}

// Begun reports whether the store has a version above 0 of the run.
func (r *Remote) Begun(ctx context.Context) (bool, error) {
	all, err := r.copies(ctx)
	return len(all) > 0 && all[len(all)-1].version > 0, err
}

// Upload puts a version into the store. Version 0 has no SHA256SUMS of its own.
// Upload continues an upload that was cut.
func (r *Remote) Upload(ctx context.Context, version int, dir string) error {
	sums, err := readLimited(filepath.Join(dir, sumsFile), maxSumsBytes)
	manifest := filepath.Join(dir, sumsFile)
	if errors.Is(err, fs.ErrNotExist) && version == 0 {
		if sums, err = initialSums(ctx, dir); err != nil {
			return err
		}
		manifest, err = temporaryFile(sums)
		defer os.Remove(manifest) // a file of some hundred bytes
	}
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", dir, err)
	}
	listed, err := parseSums(dir, sums)
	if err != nil {
		return err
	}
	to := path.Join(r.dir(), copyName(version, sums))
	put := func(name, file string) error {
		return r.retry(ctx, "upload", func() error { return r.Objects.Put(ctx, path.Join(to, name), file) })
	}
	err = eachFile(slices.Sorted(maps.Keys(listed)), func(name string) error {
		return put(filepath.ToSlash(name), filepath.Join(dir, name))
	})
	if err == nil && r.Confirm != nil {
		err = r.Confirm(ctx)
	}
	if err == nil {
		err = put(sumsFile, manifest)
	}
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", dir, err)
	}
	return nil
}

// initialSums returns SHA256SUMS for the directory of version 0.
func initialSums(ctx context.Context, dir string) ([]byte, error) {
	sums, err := sumsIn(ctx, dir)
	if err != nil {
		return nil, err
	}
	return sumsText(dir, sums)
}

func temporaryFile(content []byte) (string, error) {
	f, err := os.CreateTemp("", "codea1-sums-")
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	return f.Name(), errors.Join(err, f.Close())
}

// Restore makes the newest version of the store the newest one of a trainer's folder.
// If the folder has a newer one, which a killed trainer did not upload whole, Restore
// uploads it.
func (r *Remote) Restore(ctx context.Context, folder Folder) error {
	local, err := folder.Open()
	if err != nil {
		return err
	}
	all, err := r.copies(ctx)
	if err != nil {
		return err
	}
	newest, names := 0, []string(nil)
	for _, c := range all {
		if !c.complete || c.version == 0 {
			continue
		}
		if c.version > newest {
			newest, names = c.version, nil
		}
		names = append(names, c.name)
	}
	if n := len(local); n > 0 && local[n-1] >= newest {
		dir := folder.Dir(local[n-1])
		sums, err := readLimited(filepath.Join(dir, sumsFile), maxSumsBytes)
		switch {
		case err != nil:
			return corrupt(dir, sumsFile, "cannot be read: "+err.Error())
		case local[n-1] > newest:
			return r.Upload(ctx, local[n-1], dir)
		case slices.Contains(names, copyName(newest, sums)):
			return nil
		}
		// Another trainer made this version too. The workers have that one.
	}
	if newest == 0 {
		return nil
	}
	r.Logger.Info("fetching the newest version from the checkpoint store", "role", r.Role, "version", newest)
	unlock, err := r.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	partial, err := r.download(ctx, names[0], nil)
	if err != nil {
		return err
	}
	return replace(partial, folder.Dir(newest))
}

// FetchInitial makes dir the directory of version 0 that run.started names, unless dir
// exists.
func (r *Remote) FetchInitial(ctx context.Context, named events.Checkpoint, dir string) error {
	unlock, err := r.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	partial, err := r.find(ctx, 0, named, nil)
	if err != nil {
		return fmt.Errorf("version 0 of the %s model: %w; the recorder uploads it when it starts with --checkpoint-store", r.Role, err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	return errors.Join(os.Remove(filepath.Join(partial, sumsFile)), os.Rename(partial, dir), syncPath(filepath.Dir(dir)))
}

// Fetch returns a directory of the cache with the weights of a version. It has no
// optimizer state. The cache keeps the newest versions. The error is fs.ErrNotExist
// if the store lacks the version.
func (r *Remote) Fetch(ctx context.Context, version int, named events.Checkpoint) (string, error) {
	const keep = 2 // one may be in use
	unlock, err := r.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	cache := Folder{Path: r.Cache, Run: r.Run, Role: r.Role}
	dir, err := cache.Find(ctx, version, named)
	var damaged *Error
	if !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &damaged) {
		return dir, err
	}
	partial, err := r.find(ctx, version, named, trainerOnly)
	if err != nil {
		return "", err
	}
	if err := replace(partial, cache.Dir(version)); err != nil {
		return "", err
	}
	return cache.Dir(version), cache.Retain(keep, 0)
}

// trainerOnly reports whether a file is no part of the model: optimizer.safetensors or
// optimizer-00001-of-00004.safetensors, for example.
func trainerOnly(name string) bool {
	end := strings.IndexAny(name, ".-")
	return end > 0 && (name[:end] == "optimizer" || name[:end] == "masters")
}

// Retain deletes the old versions of the store by the rule of Folder.Retain, and the
// cut uploads of others. Version 0 stays. One failed try is left to the next
// version: training goes on.
func (r *Remote) Retain(ctx context.Context, keepLast, keepEvery int) {
	keys, err := r.copies(ctx)
	if err != nil {
		return // ctx has ended
	}
	var versions []int
	for _, c := range keys {
		if c.complete {
			versions = append(versions, c.version)
		}
	}
	versions = slices.Compact(versions)
	old := expired(versions, keepLast, keepEvery)
	for _, c := range keys {
		cut := !c.complete && len(versions) > 0 && c.version <= versions[len(versions)-1]
		if !cut && !slices.Contains(old, c.version) {
			continue
		}
		dir := path.Join(r.dir(), c.name)
		err := r.Objects.Remove(ctx, path.Join(dir, sumsFile)) // from now on it is no version
		if err == nil {
			err = r.Objects.Remove(ctx, dir)
		}
		if err != nil {
			r.Logger.Warn("an old version stays in the checkpoint store for now", "role", r.Role, "version", c.version, "error", err)
		}
	}
}
