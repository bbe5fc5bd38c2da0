package gpuworker

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codea1/events"
)

// A role's checkpoints are directories v000001, v000002, ... of one folder.
// Each holds what Learner.Save wrote, trainer.json (where the trainer stands),
// and SHA256SUMS over all of it, in the format of sha256sum -c. A directory
// under construction is named .tmp-v000003 and is renamed when all of it is on
// disk, so a directory with a version's name is complete.
const (
	weightsFile      = "model.safetensors"
	trainerFile      = "trainer.json"
	sumsFile         = "SHA256SUMS"
	temporaryPrefix  = ".tmp-"
	checkpointFormat = 1
	maxTrainerBytes  = 16 << 20
	maxSumsBytes     = 1 << 20
)

// checkpoints is the folder of one role's checkpoints in one run.
type checkpoints struct {
	folder string
	run    string
	role   events.Role
}

func versionName(version int) string { return fmt.Sprintf("v%06d", version) }

func parseVersion(name string) (int, bool) {
	var version int
	if _, err := fmt.Sscanf(name, "v%d", &version); err != nil || versionName(version) != name {
		return 0, false
	}
	return version, true
}

func (c *checkpoints) dir(version int) string { return filepath.Join(c.folder, versionName(version)) }

// open makes the folder where it is missing, removes what a killed trainer
// left half written, and returns the complete versions in ascending order.
func (c *checkpoints) open() ([]int, error) {
	if err := os.MkdirAll(c.folder, 0o755); err != nil {
		return nil, fmt.Errorf("checkpoints: %w", err)
	}
	entries, err := os.ReadDir(c.folder)
	if err != nil {
		return nil, fmt.Errorf("checkpoints: %w", err)
	}
	var versions []int
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), temporaryPrefix) {
			if err := os.RemoveAll(filepath.Join(c.folder, e.Name())); err != nil {
				return nil, fmt.Errorf("checkpoints: remove an unfinished one: %w", err)
			}
			continue
		}
		if v, ok := parseVersion(e.Name()); ok && e.IsDir() {
			versions = append(versions, v)
		}
	}
	slices.Sort(versions)
	return versions, nil
}

// read checks every byte of a version against SHA256SUMS and returns its
// trainer.json.
func (c *checkpoints) read(ctx context.Context, version int) (*trainerRecord, error) {
	dir := c.dir(version)
	if err := c.verify(ctx, dir); err != nil {
		return nil, err
	}
	raw, err := readLimited(filepath.Join(dir, trainerFile), maxTrainerBytes)
	if err != nil {
		return nil, c.corrupt(dir, trainerFile, "cannot be read: "+err.Error())
	}
	var r trainerRecord
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, c.corrupt(dir, trainerFile, "is not JSON of a trainer: "+err.Error())
	}
	if r.Format != checkpointFormat {
		return nil, fmt.Errorf("checkpoint %s: %s has format %d, this build knows %d", dir, trainerFile, r.Format, checkpointFormat)
	}
	if r.Run != c.run || r.Role != c.role || r.Version != version || r.Step != version {
		return nil, fmt.Errorf("checkpoint %s: %s is of run %q, role %q, version %d, but this trainer is run %q, role %q and the directory says version %d",
			dir, trainerFile, r.Run, r.Role, r.Version, c.run, c.role, version)
	}
	return &r, nil
}

func (c *checkpoints) verify(ctx context.Context, dir string) error {
	raw, err := readLimited(filepath.Join(dir, sumsFile), maxSumsBytes)
	if err != nil {
		return c.corrupt(dir, sumsFile, "cannot be read: "+err.Error())
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		want, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok || len(want) != 2*sha256.Size || !filepath.IsLocal(name) {
			return c.corrupt(dir, sumsFile, "is malformed")
		}
		have, err := fileSHA256(ctx, filepath.Join(dir, name))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return c.corrupt(dir, name, "cannot be read: "+err.Error())
		}
		if have != want {
			return c.corrupt(dir, name, fmt.Sprintf("has SHA-256 %.12s..., but %s says %.12s...", have, sumsFile, want))
		}
		listed[name] = true
	}
	for _, name := range []string{weightsFile, trainerFile} {
		if !listed[name] {
			return c.corrupt(dir, sumsFile, "does not list "+name)
		}
	}
	return nil
}

func (c *checkpoints) corrupt(dir, file, reason string) error {
	return &CheckpointError{Dir: dir, File: file, Reason: reason,
		Remedy: "delete directory " + dir + " to go back to the checkpoint before it"}
}

// write makes the checkpoint of a record: save fills the directory, trainer.json
// and the sums are added, all of it is flushed to disk, and only then does it
// get its version's name. It sets the record's hash of the weights.
func (c *checkpoints) write(ctx context.Context, r *trainerRecord, save func(dir string) error) error {
	name := versionName(r.Version)
	temporary := filepath.Join(c.folder, temporaryPrefix+name)
	if err := os.RemoveAll(temporary); err != nil {
		return fmt.Errorf("checkpoint %s: %w", name, err)
	}
	if err := os.Mkdir(temporary, 0o755); err != nil {
		return fmt.Errorf("checkpoint %s: %w", name, err)
	}
	if err := save(temporary); err != nil {
		return fmt.Errorf("checkpoint %s: %w", name, err)
	}
	if err := c.seal(ctx, r, temporary); err != nil {
		return fmt.Errorf("checkpoint %s: %w", name, err)
	}
	if err := os.Rename(temporary, c.dir(r.Version)); err != nil {
		return fmt.Errorf("checkpoint %s: %w", name, err)
	}
	return syncPath(c.folder)
}

// seal adds trainer.json and SHA256SUMS and flushes the directory.
func (c *checkpoints) seal(ctx context.Context, r *trainerRecord, dir string) error {
	var err error
	if r.WeightsSHA256, err = fileSHA256(ctx, filepath.Join(dir, weightsFile)); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, trainerFile), append(raw, '\n'), 0o644); err != nil {
		return err
	}
	var sums strings.Builder
	var paths []string
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		paths = append(paths, path)
		if e.IsDir() {
			return nil
		}
		sum, err := fileSHA256(ctx, path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%s  %s\n", sum, name)
		return nil
	})
	if err != nil {
		return err
	}
	file := filepath.Join(dir, sumsFile)
	if err := os.WriteFile(file, []byte(sums.String()), 0o644); err != nil {
		return err
	}
	for _, path := range append(paths, file, dir) {
		if err := syncPath(path); err != nil {
			return err
		}
	}
	return nil
}

// retain deletes the versions that expired names.
func (c *checkpoints) retain(keepLast, keepEvery int) error {
	versions, err := c.open()
	if err != nil {
		return err
	}
	for _, v := range expired(versions, keepLast, keepEvery) {
		// Under its temporary name a half-deleted checkpoint is never taken for
		// a whole one.
		temporary := filepath.Join(c.folder, temporaryPrefix+versionName(v))
		if err := os.Rename(c.dir(v), temporary); err != nil {
			return fmt.Errorf("checkpoints: %w", err)
		}
		if err := os.RemoveAll(temporary); err != nil {
			return fmt.Errorf("checkpoints: %w", err)
		}
	}
	return nil
}
