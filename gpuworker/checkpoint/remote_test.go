package checkpoint_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"codea1/events"
	"codea1/gpuworker/checkpoint"
	"codea1/gpuworker/checkpoint/objects"
	"codea1/gpuworker/checkpoint/objects/s3test"
)

func TestMain(m *testing.M) {
	s3test.Main()
	goleak.VerifyTestMain(m)
}

// machine returns the Remote and the folder of a machine of its own.
func machine(t *testing.T, address string) (*checkpoint.Remote, checkpoint.Folder) {
	t.Helper()
	parsed, err := objects.ParseAddress(address)
	if err != nil {
		t.Fatal(err)
	}
	store, err := objects.Open(parsed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	dir := t.TempDir()
	folder := checkpoint.Folder{Path: filepath.Join(dir, "checkpoints"), Run: "r1", Role: events.RoleCode}
	return &checkpoint.Remote{Objects: store, Run: "r1", Role: events.RoleCode, Cache: filepath.Join(dir, "cache"), Logger: slog.New(slog.DiscardHandler)}, folder
}

// write makes a version and returns its name in events.
func write(t *testing.T, folder checkpoint.Folder, version int, salt string) events.Checkpoint {
	t.Helper()
	r := &checkpoint.Record{Format: checkpoint.Format, Run: folder.Run, Role: folder.Role, Version: version, Step: version, Position: "5"}
	err := folder.Write(t.Context(), r, func(dir string) error {
		large := bytes.Repeat(fmt.Append(nil, "weights ", version, salt), 10_000)
		return errors.Join(
			os.WriteFile(filepath.Join(dir, "model.safetensors"), large, 0o644),
			os.WriteFile(filepath.Join(dir, "optimizer.safetensors"), large[1:], 0o644),
			os.WriteFile(filepath.Join(dir, "masters.safetensors"), large[2:], 0o644),
			os.Mkdir(filepath.Join(dir, "sub"), 0o755),
			os.WriteFile(filepath.Join(dir, "sub", "config.json"), []byte("{}"), 0o644))
	})
	if err != nil {
		t.Fatal(err)
	}
	return describe(t, folder.Dir(version))
}

func describe(t *testing.T, dir string) events.Checkpoint {
	t.Helper()
	c, err := checkpoint.Describe(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func noErr(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What one machine uploads, others have: a trainer whole, a rollout the weights.
func TestRemote(t *testing.T) {
	server := s3test.New(t).Start()
	for name, address := range map[string]string{"directory": "file://" + filepath.Join(t.TempDir(), "store"), "bucket": server.Address("p")} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			remote, folder := machine(t, address)
			start := filepath.Join(t.TempDir(), "start")
			noErr(t, errors.Join(os.Mkdir(start, 0o755), os.WriteFile(filepath.Join(start, "model.safetensors"), []byte("zero"), 0o644)))
			noErr(t, remote.Upload(ctx, 0, start))
			if begun, err := remote.Begun(ctx); err != nil || begun {
				t.Errorf("with version 0 the run has begun: %v, %v", begun, err)
			}
			var named []events.Checkpoint
			for v := range 4 {
				named = append(named, write(t, folder, v+1, ""))
				noErr(t, remote.Upload(ctx, v+1, folder.Dir(v+1)))
			}
			noErr(t, remote.Restore(ctx, folder)) // has it already

			other, otherFolder := machine(t, address)
			noErr(t, other.FetchInitial(ctx, describe(t, start), filepath.Join(otherFolder.Path, "start")))
			if d := cmp.Diff(names(t, start), names(t, filepath.Join(otherFolder.Path, "start"))); d != "" {
				t.Error(d)
			}
			noErr(t, other.Restore(ctx, otherFolder))
			if _, err := otherFolder.Read(ctx, 4); err != nil {
				t.Error(err)
			}
			if d := cmp.Diff(names(t, folder.Dir(4)), names(t, otherFolder.Dir(4))); d != "" {
				t.Error(d)
			}
			for v := 1; v <= 4; v++ {
				dir, err := other.Fetch(ctx, v, named[v-1])
				noErr(t, err)
				if have := describe(t, dir); have.SHA256 != named[v-1].SHA256 {
					t.Errorf("version %d has other weights", v)
				}
				if d := cmp.Diff([]string{"SHA256SUMS", "model.safetensors", "sub/config.json", "trainer.json"}, names(t, dir)); d != "" {
					t.Error(d)
				}
			}
			entries, err := os.ReadDir(other.Cache)
			if noErr(t, err); len(entries) != 3 { // two versions and the lock
				t.Errorf("the cache has %v", entries)
			}
			if _, err := other.Fetch(ctx, 2, named[2]); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("version 2 with the weights of version 3: %v", err)
			}
			if begun, err := other.Begun(ctx); err != nil || !begun {
				t.Errorf("the run has begun: %v, %v", begun, err)
			}

			remote.Retain(ctx, 1, 3)
			third, _ := machine(t, address)
			for v := 1; v <= 4; v++ {
				_, err := third.Fetch(ctx, v, named[v-1])
				if kept := v >= 3; kept != (err == nil) || !kept && !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("version %d after the removal of old ones: %v", v, err)
				}
			}
			noErr(t, third.FetchInitial(ctx, describe(t, start), filepath.Join(t.TempDir(), "start")))
		})
	}
}

// A login that can write to the store can add files to a copy of a version. A copy with
// other weights beside the right ones is none of the version: an engine could load them. No
// rollout fetches the state of an optimizer, also in shards.
func TestForeignWeightsBesideTheRightOnes(t *testing.T) {
	store := t.TempDir()
	trainer, folder := machine(t, "file://"+store)
	r := &checkpoint.Record{Format: checkpoint.Format, Run: "r1", Role: events.RoleCode, Version: 1, Step: 1}
	noErr(t, folder.Write(t.Context(), r, func(dir string) (err error) {
		for _, name := range []string{"model.safetensors", "optimizer-00001-of-00002.safetensors", "optimizer-00002-of-00002.safetensors", "masters-00001-of-00001.safetensors"} {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644))
		}
		return err
	}))
	named := describe(t, folder.Dir(1))
	rollout, _ := machine(t, "file://"+store)
	foreign := map[string]string{"model.safetensors": "model.safetensors", "model.safetensors.index.json": `{"weight_map": {"w": "any.safetensors"}}`, "any.safetensors": "others"}
	var sums []byte
	for _, name := range slices.Sorted(maps.Keys(foreign)) {
		sums = fmt.Appendf(sums, "%x  %s\n", sha256.Sum256([]byte(foreign[name])), name)
	}
	foreign["SHA256SUMS"] = string(sums)
	hash := sha256.Sum256(sums)
	to := filepath.Join(store, "r1", "checkpoints", "code", fmt.Sprintf("v000001-%x", hash[:8]))
	noErr(t, os.MkdirAll(to, 0o755))
	for name, content := range foreign {
		noErr(t, os.WriteFile(filepath.Join(to, name), []byte(content), 0o644))
	}
	if dir, err := rollout.Fetch(t.Context(), 1, named); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s, %v", dir, err)
	}
	noErr(t, trainer.Upload(t.Context(), 1, folder.Dir(1)))
	dir, err := rollout.Fetch(t.Context(), 1, named)
	noErr(t, err)
	if diff := cmp.Diff([]string{"SHA256SUMS", "model.safetensors", "trainer.json"}, names(t, dir)); diff != "" {
		t.Error(diff)
	}
	// The same files in the folder of a trainer on this machine.
	for name, content := range foreign {
		noErr(t, os.WriteFile(filepath.Join(folder.Dir(1), name), []byte(content), 0o644))
	}
	var damaged *checkpoint.Error
	if dir, err := folder.Find(t.Context(), 1, named); !errors.As(err, &damaged) {
		t.Errorf("%s, %v", dir, err)
	}
}

// A trainer that ended during an upload leaves no version. The next one continues it,
// or makes the version again on a machine that does not have it.
func TestCutUploadIsNoVersion(t *testing.T) {
	address := "file://" + t.TempDir()
	remote, folder := machine(t, address)
	named := write(t, folder, 1, "")
	lost := errors.New("the lease is lost")
	remote.Confirm = func(context.Context) error { return lost } // after all files but the last one
	if err := remote.Upload(t.Context(), 1, folder.Dir(1)); !errors.Is(err, lost) {
		t.Fatal(err)
	}
	other, otherFolder := machine(t, address)
	if _, err := other.Fetch(t.Context(), 1, named); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a cut upload was fetched: %v", err)
	}
	noErr(t, other.Restore(t.Context(), otherFolder))
	if versions, err := otherFolder.Versions(); err != nil || len(versions) > 0 {
		t.Errorf("versions %v, %v", versions, err)
	}

	remote.Confirm = nil
	noErr(t, remote.Restore(t.Context(), folder)) // as the next trainer on the first machine
	if _, err := other.Fetch(t.Context(), 1, named); err != nil {
		t.Error(err)
	}
	keys, err := remote.Objects.List(t.Context(), "r1")
	if noErr(t, err); len(keys) != len(names(t, folder.Dir(1))) {
		t.Errorf("the store has %v", keys)
	}
}

// Another trainer made the version while this machine was away: the workers have that
// one.
func TestRestoreTakesTheVersionOfTheStore(t *testing.T) {
	address := "file://" + t.TempDir()
	remote, folder := machine(t, address)
	other, otherFolder := machine(t, address)
	write(t, folder, 1, "not uploaded")
	want := write(t, otherFolder, 1, "uploaded")
	noErr(t, other.Upload(t.Context(), 1, otherFolder.Dir(1)))
	noErr(t, remote.Restore(t.Context(), folder))
	if have := describe(t, folder.Dir(1)); have.SHA256 != want.SHA256 {
		t.Error("the trainer goes on from weights that no worker has")
	}
	if _, err := folder.Read(t.Context(), 1); err != nil {
		t.Error(err)
	}
}

// Every kind of damage to an object is found, named, and mended by the next upload.
func TestDamagedObjects(t *testing.T) {
	for _, c := range []struct {
		name, file string
		damage     func([]byte) []byte
	}{
		{"truncated", "model.safetensors", func(b []byte) []byte { return b[:len(b)/2] }},
		{"longer", "model.safetensors", func(b []byte) []byte { return append(b, 'x') }},
		{"flipped", "sub/config.json", func(b []byte) []byte { b[0] ^= 1; return b }},
		{"sums", "SHA256SUMS", func(b []byte) []byte { b[0] ^= 1; return b }},
		{"a name out of the directory", "SHA256SUMS", func(b []byte) []byte {
			return append(b, strings.Repeat("0", 64)+"  ../../../x\n"...)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			remote, folder := machine(t, "file://"+root)
			named := write(t, folder, 1, "")
			noErr(t, remote.Upload(t.Context(), 1, folder.Dir(1)))
			stored, err := filepath.Glob(filepath.Join(root, "r1/checkpoints/code/v000001-*", c.file))
			if err != nil || len(stored) != 1 {
				t.Fatal(stored, err)
			}
			whole, err := os.ReadFile(stored[0])
			noErr(t, err)
			noErr(t, os.WriteFile(stored[0], c.damage(slices.Clone(whole)), 0o644))
			other, _ := machine(t, "file://"+root)
			_, err = other.Fetch(t.Context(), 1, named)
			var damaged *checkpoint.Error
			if !errors.As(err, &damaged) || damaged.File != c.file || !strings.Contains(err.Error(), "delete r1/checkpoints/code/v000001-") {
				t.Fatalf("fetched a damaged version: %v", err)
			}
			noErr(t, os.WriteFile(stored[0], whole, 0o644))
			if _, err := other.Fetch(t.Context(), 1, named); err != nil {
				t.Errorf("after the repair: %v", err)
			}
		})
	}
}

// The server is down at first, ends in the middle of an upload and of a download, cuts
// an answer, and sends a damaged one. The methods go on, from where they were.
func TestOutagesOfTheStore(t *testing.T) {
	server := s3test.New(t)
	address := server.Address("p")
	remote, folder := machine(t, address)
	named := write(t, folder, 1, "")
	// once does something at the first request that matches, and then lets it through.
	once := func(method, suffix string, do func(w http.ResponseWriter, r *http.Request) bool) *sync.Once {
		var first sync.Once
		server.Break(func(w http.ResponseWriter, r *http.Request) (answered bool) {
			if r.Method == method && strings.HasSuffix(r.URL.Path, suffix) {
				first.Do(func() { answered = do(w, r) })
			}
			return answered
		})
		return &first
	}
	restart := func(http.ResponseWriter, *http.Request) bool {
		server.Kill()
		server.Start()
		panic(http.ErrAbortHandler)
	}
	happened := func(o *sync.Once) {
		t.Helper()
		o.Do(func() { t.Error("the fault did not happen") })
	}

	var up sync.Once // the server starts when the first request has failed
	server.Break(func(http.ResponseWriter, *http.Request) bool {
		fail := false
		up.Do(func() { fail = true; server.Start() })
		if fail {
			panic(http.ErrAbortHandler)
		}
		return false
	})
	noErr(t, remote.Restore(t.Context(), folder)) // uploads it
	happened(&up)
	noErr(t, remote.Objects.Remove(t.Context(), "r1"))

	killed := once(http.MethodPut, "optimizer.safetensors", restart)
	noErr(t, remote.Upload(t.Context(), 1, folder.Dir(1)))
	happened(killed)

	refused := once(http.MethodGet, "model.safetensors", func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusForbidden) // the key was changed, and is replaced soon
		return true
	})
	other, _ := machine(t, address)
	_, err := other.Fetch(t.Context(), 1, named)
	noErr(t, err)
	happened(refused)

	killed = once(http.MethodGet, "model.safetensors", restart)
	other, _ = machine(t, address)
	_, err = other.Fetch(t.Context(), 1, named)
	noErr(t, err)
	happened(killed)

	var ranges []string
	weights, err := os.ReadFile(filepath.Join(folder.Dir(1), "model.safetensors"))
	noErr(t, err)
	half := len(weights) / 2
	var mu sync.Mutex
	server.Break(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "model.safetensors") {
			return false
		}
		mu.Lock()
		ranges = append(ranges, r.Header.Get("Range"))
		n := len(ranges)
		mu.Unlock()
		if n > 1 {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(weights)))
		w.Header().Set("Etag", `"x"`)
		w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
		_, _ = w.Write(weights[:half])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	other, _ = machine(t, address)
	_, err = other.Fetch(t.Context(), 1, named)
	noErr(t, err)
	mu.Lock()
	if len(ranges) != 2 || ranges[0] != "" {
		t.Errorf("the requests asked for %q", ranges)
	}
	mu.Unlock()

	damaged := once(http.MethodGet, "model.safetensors", func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Length", fmt.Sprint(len(weights)))
		w.Header().Set("Etag", `"x"`)
		w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
		_, _ = w.Write(append([]byte("X"), weights[1:]...))
		return true
	})
	other, _ = machine(t, address)
	_, err = other.Fetch(t.Context(), 1, named)
	noErr(t, err)
	happened(damaged)
}

// The end of the context ends the waiting for a store.
func TestRemoteEndsWithItsContext(t *testing.T) {
	remote, folder := machine(t, s3test.New(t).Address("p")) // no server runs
	named := write(t, folder, 1, "")
	ctx, cancel := context.WithCancel(t.Context())
	var tries sync.Once
	remote.Logger = slog.New(logged(func() { tries.Do(cancel) }))
	if err := remote.Upload(ctx, 1, folder.Dir(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("upload: %v", err)
	}
	if _, err := remote.Fetch(ctx, 1, named); !errors.Is(err, context.Canceled) {
		t.Errorf("fetch: %v", err)
	}
	remote.Retain(ctx, 1, 0)
}

// logged calls itself for each record of a log.
type logged func()

func (l logged) Enabled(context.Context, slog.Level) bool  { return true }
func (l logged) Handle(context.Context, slog.Record) error { l(); return nil }
func (l logged) WithAttrs([]slog.Attr) slog.Handler        { return l }
func (l logged) WithGroup(string) slog.Handler             { return l }
