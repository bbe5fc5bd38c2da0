package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"codea1/events"
)

// Copy puts a version into another folder, where a trainer of to.Run continues
// from it at position. from and to may be the same folder; a version that
// exists there is replaced.
//
// Copy checks every byte first. Weights and optimizer state become hard links
// if the file system supports them, because nothing changes the files of a
// checkpoint.
func Copy(ctx context.Context, from, to Folder, version int, position events.Position) error {
	if err := from.recoverReplaced(version); err != nil {
		return err
	}
	record, err := from.Read(ctx, version)
	if err != nil {
		return err
	}
	record.Run, record.Position = to.Run, string(position)
	return create(to.temporary(version), to.Dir(version), replace, func(dir string) error {
		if err := copyFiles(from.Dir(version), dir); err != nil {
			return err
		}
		recorded := record.WeightsSHA256
		if err := seal(ctx, record, dir); err != nil {
			return err
		}
		if record.WeightsSHA256 != recorded {
			return fmt.Errorf("the weights have SHA-256 %s, but %s says %s", record.WeightsSHA256, trainerFile, recorded)
		}
		return nil
	})
}

// CopyInitial copies the directory of version 0, which has no trainer.json.
func CopyInitial(from, to string) error {
	return create(temporaryName(to), to, os.Rename, func(dir string) error {
		return errors.Join(copyFiles(from, dir), syncPath(dir))
	})
}

// CreateInitial creates the directory of version 0 from the files of another
// checkpoint. It follows symbolic links, as in the cache of Hugging Face.
func CreateInitial(from fs.FS, to string) error {
	return WriteInitial(to, func(dir string) error {
		entries, err := fs.ReadDir(from, ".")
		if err != nil {
			return err
		}
		for _, e := range entries {
			if info, err := fs.Stat(from, e.Name()); err != nil || !info.Mode().IsRegular() {
				continue
			}
			in, err := from.Open(e.Name())
			if err != nil {
				return err
			}
			if err := writeFile(filepath.Join(dir, e.Name()), in); err != nil {
				return err
			}
		}
		return syncPath(dir)
	})
}

// WriteInitial creates the directory of version 0 with the files that fill writes.
func WriteInitial(to string, fill func(dir string) error) error {
	return create(temporaryName(to), to, os.Rename, fill)
}

func temporaryName(dir string) string {
	return filepath.Join(filepath.Dir(dir), temporaryPrefix+filepath.Base(dir))
}

func replacedName(dir string) string {
	return filepath.Join(filepath.Dir(dir), replacedPrefix+filepath.Base(dir))
}

// replace renames temporary to dir, which may exist. If the process is killed
// between the two renames, recoverReplaced restores the old directory.
func replace(temporary, dir string) error {
	replaced := replacedName(dir)
	if err := os.Rename(dir, replaced); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(temporary, dir); err != nil {
		return err
	}
	return errors.Join(syncPath(filepath.Dir(dir)), os.RemoveAll(replaced))
}

// recoverReplaced completes or undoes a replacement that was interrupted.
func (f Folder) recoverReplaced(version int) error {
	dir := f.Dir(version)
	replaced := replacedName(dir)
	if _, err := os.Stat(replaced); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := os.Stat(dir); err == nil {
		return os.RemoveAll(replaced)
	}
	return os.Rename(replaced, dir)
}

// copyFiles copies the files of a checkpoint except those that seal writes.
func copyFiles(from, to string) error {
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
		in, err := os.Open(path)
		if err != nil {
			return err
		}
		return writeFile(target, in)
	})
}

// writeFile copies in to a new file, flushes it to disk and closes in.
func writeFile(path string, in io.ReadCloser) (err error) {
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}
