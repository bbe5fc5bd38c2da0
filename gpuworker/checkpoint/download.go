package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/gofrs/flock"

	"codea1/events"
	"codea1/events/files"
)

// partialPrefix begins the name of a download. The next process continues it.
const partialPrefix = ".fetch-"

// retry does a request until the store answers it, and logs the begin and the end of
// an outage. A missing object is an answer.
func (r *Remote) retry(ctx context.Context, op string, do func() error) error {
	waits := backoff.NewExponentialBackOff()
	waits.InitialInterval, waits.MaxInterval = 100*time.Millisecond, 10*time.Second
	failures := 0
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := do()
		if errors.Is(err, fs.ErrNotExist) {
			return struct{}{}, backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(waits), backoff.WithMaxElapsedTime(0), backoff.WithNotify(func(err error, _ time.Duration) {
		// Credentials can expire; the log repeats so that someone sees it.
		if failures%30 == 0 {
			r.Logger.Warn("the checkpoint store fails, trying again", "role", r.Role, "operation", op, "error", err)
		}
		failures++
	}))
	if err == nil && failures > 0 {
		r.Logger.Info("the checkpoint store works again", "role", r.Role, "operation", op, "failures", failures)
	}
	return err
}

// lock keeps the other processes of this machine from the cache.
func (r *Remote) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(r.Cache, 0o755); err != nil {
		return nil, fmt.Errorf("checkpoint cache: %w", err)
	}
	l := flock.New(filepath.Join(r.Cache, "lock"))
	if _, err := l.TryLockContext(ctx, 100*time.Millisecond); err != nil {
		return nil, fmt.Errorf("checkpoint cache: %w", err)
	}
	return func() { _ = l.Close() }, nil
}

// find downloads the copy of a version that an event names.
func (r *Remote) find(ctx context.Context, version int, named events.Checkpoint, skip func(string) bool) (string, error) {
	all, err := r.copies(ctx)
	if err != nil {
		return "", err
	}
	var changed error
	for _, c := range all {
		if c.version != version || !c.complete {
			continue
		}
		_, listed, err := r.sums(ctx, c.name)
		if err != nil {
			return "", err
		}
		switch {
		case weightsSum(listed) != named.SHA256:
		case named.FilesSHA256 == "" || filesSum(listed) == named.FilesSHA256:
			return r.download(ctx, c.name, skip)
		default:
			changed = r.foreignFiles(c.name, listed)
		}
	}
	if changed != nil {
		return "", changed
	}
	return "", fmt.Errorf("the checkpoint store has no version %d of the %s model with weights %.12s...: %w", version, r.Role, named.SHA256, fs.ErrNotExist)
}

// foreignFiles returns the error about a copy with the weights that an event names beside
// other files than those that it names.
func (r *Remote) foreignFiles(name string, listed map[string]string) error {
	beside := slices.DeleteFunc(slices.Sorted(maps.Keys(listed)), func(file string) bool { return isWeights(file) || file == trainerFile })
	dir := path.Join(r.dir(), name)
	return &Error{Dir: dir, File: sumsFile,
		Reason: "of the checkpoint store has the weights that the log names, and not the files beside them: one of " + strings.Join(beside, ", ") + " is missing, was added or has another content",
		Remedy: "delete " + dir + " in the store, look for the login that wrote it, and start the recorder (version 0) or the trainer again, which uploads its newest version"}
}

// sums returns the SHA256SUMS of a copy.
func (r *Remote) sums(ctx context.Context, name string) (text []byte, listed map[string]string, err error) {
	err = r.retry(ctx, "fetch", func() error {
		body, err := r.Objects.Get(ctx, path.Join(r.dir(), name, sumsFile), 0)
		if err != nil {
			return err
		}
		text, err = io.ReadAll(io.LimitReader(body, maxSumsBytes))
		return errors.Join(err, body.Close())
	})
	if err != nil {
		return nil, nil, err
	}
	version, _, _ := strings.Cut(name, "-")
	number, _ := parseVersion(version)
	if copyName(number, text) != name {
		return nil, nil, r.corruptCopy(name, sumsFile)
	}
	listed, err = parseSums(name, text)
	return text, listed, err
}

// corruptCopy returns the error about a file in the store with wrong content.
func (r *Remote) corruptCopy(name, file string) error {
	dir := path.Join(r.dir(), name)
	return &Error{Dir: dir, File: file, Reason: "of the checkpoint store has not the content that the trainer uploaded",
		Remedy: "delete " + dir + " in the store and start the trainer again, which uploads its newest version"}
}

// download returns a directory of the cache with the files of a copy, except those
// that skip accepts. It continues a download that was cut, and removes those of
// other copies. The caller renames the directory.
func (r *Remote) download(ctx context.Context, name string, skip func(string) bool) (string, error) {
	partial := filepath.Join(r.Cache, partialPrefix+name)
	others, err := filepath.Glob(filepath.Join(r.Cache, partialPrefix+"*"))
	for _, other := range others {
		if other != partial {
			err = errors.Join(err, os.RemoveAll(other))
		}
	}
	if err != nil {
		return "", fmt.Errorf("checkpoint cache: %w", err)
	}
	text, listed, err := r.sums(ctx, name)
	if err != nil {
		return "", err
	}
	if skip != nil {
		maps.DeleteFunc(listed, func(file, _ string) bool { return skip(file) })
	}
	limits, err := r.limits(name, partial, slices.Sorted(maps.Keys(listed)), parseSizes(text))
	if err != nil {
		return "", err
	}
	err = eachFile(slices.Sorted(maps.Keys(listed)), func(file string) error {
		return r.fetchFile(ctx, name, file, filepath.Join(partial, file), listed[file], limits[file])
	})
	if err != nil {
		return "", err
	}
	err = os.WriteFile(filepath.Join(partial, sumsFile), text, 0o644)
	return partial, errors.Join(err, syncPath(filepath.Join(partial, sumsFile)), syncPath(partial))
}

// spareShare is the part of the free disk space that a download leaves to the log and
// the other files of the run.
const spareShare = 0.1

// limits returns the most bytes of each file of a copy. Any client with write access
// to the store can put an endless object there, or a SHA256SUMS with any size. So a
// file has at most its size there, and all files together at most the free disk space
// without a spare part. partial may have a part of the files.
func (r *Remote) limits(name, partial string, listed []string, sizes map[string]int64) (map[string]int64, error) {
	free, err := files.Free(r.Cache)
	if err != nil {
		return nil, fmt.Errorf("checkpoint cache: %w", err)
	}
	room, unsized := int64(min((1-spareShare)*float64(free), 1<<62)), int64(0)
	for _, file := range listed {
		if info, err := os.Stat(filepath.Join(partial, file)); err == nil {
			room += info.Size()
		}
		if _, ok := sizes[file]; !ok {
			unsized++
		}
	}
	total := room
	limits := map[string]int64{}
	for _, file := range listed {
		size, ok := sizes[file]
		if !ok {
			continue
		}
		if size > room {
			dir := path.Join(r.dir(), name)
			return nil, &Error{Dir: dir, File: sumsFile, Reason: fmt.Sprintf("of the checkpoint store has files for which the disk of %s has no room: %d MiB are left for them", r.Cache, total>>20),
				Remedy: "make room, or delete " + dir + " in the store if the trainer did not upload it"}
		}
		room, limits[file] = room-size, size
	}
	for _, file := range listed {
		if _, ok := sizes[file]; !ok {
			limits[file] = room / unsized
		}
	}
	return limits, nil
}

// fetchFile fetches a file of at most so many bytes and compares it with its SHA-256. A
// file with another content is fetched once more: the part of it that was there may be
// damaged.
func (r *Remote) fetchFile(ctx context.Context, name, file, to, want string, most int64) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("checkpoint cache: %w", err)
	}
	key := path.Join(r.dir(), name, filepath.ToSlash(file))
	for last := range 2 {
		if err := r.retry(ctx, "fetch", func() error { return r.fetchRest(ctx, key, to, most) }); err != nil {
			return err
		}
		have, err := fileSHA256(ctx, to)
		if err != nil || have == want {
			return err
		}
		if err := os.Remove(to); err != nil {
			return err
		}
		if last == 0 {
			r.Logger.Warn("a file from the checkpoint store is damaged, fetching it again", "file", key)
		}
	}
	return r.corruptCopy(name, file)
}

// fetchRest appends the missing end to a file, until it has one byte more than it may
// have. A failure of the disk of this machine is permanent.
func (r *Remote) fetchRest(ctx context.Context, key, to string, most int64) error {
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return backoff.Permanent(err)
	}
	defer f.Close() // Sync has returned the errors of writing
	info, err := f.Stat()
	if err != nil {
		return backoff.Permanent(err)
	}
	body, err := r.Objects.Get(ctx, key, info.Size())
	if err != nil {
		return err
	}
	out := localWriter{file: f}
	_, err = io.Copy(&out, io.LimitReader(body, max(0, most+1-info.Size())))
	err = errors.Join(err, body.Close())
	if localErr := errors.Join(out.err, f.Sync()); localErr != nil {
		return backoff.Permanent(fmt.Errorf("checkpoint cache: %w", localErr))
	}
	return err
}

// localWriter remembers the error of the file, which io.Copy does not tell from one of
// the store.
type localWriter struct {
	file *os.File
	err  error
}

func (w *localWriter) Write(p []byte) (int, error) {
	n, err := w.file.Write(p)
	w.err = err
	return n, err
}
