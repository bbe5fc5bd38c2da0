package checkpoint_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codea1/events"
	"codea1/gpuworker/checkpoint"
)

// forge puts a copy of a version into the store beside those that it has: with the files
// of dir, of which one has another content.
func forge(t *testing.T, store, dir string, version int, file, content string) {
	t.Helper()
	from := t.TempDir()
	noErr(t, os.CopyFS(from, os.DirFS(dir)))
	noErr(t, os.WriteFile(filepath.Join(from, file), []byte(content), 0o644))
	var sums []byte
	for _, name := range names(t, from) {
		if name != "SHA256SUMS" {
			raw, err := os.ReadFile(filepath.Join(from, name))
			noErr(t, err)
			sums = fmt.Appendf(sums, "%x  %s\n", sha256.Sum256(raw), name)
		}
	}
	noErr(t, os.WriteFile(filepath.Join(from, "SHA256SUMS"), sums, 0o644))
	hash := sha256.Sum256(sums)
	noErr(t, os.CopyFS(filepath.Join(store, "r1", "checkpoints", "code", fmt.Sprintf("v%06d-%x", version, hash[:8])), os.DirFS(from)))
}

// A login that can write to the store cannot give a version another configuration, tokenizer
// or optimizer's state: events name the sum of all files. The right copy beside a forged one is
// taken. Events of earlier builds name the weights only.
func TestForeignFilesBesideTheRightWeights(t *testing.T) {
	t.Parallel()
	for version, foreign := range map[int]string{0: "tokenizer.json", 1: "sub/config.json", 2: "optimizer.safetensors"} {
		for _, right := range []bool{false, true} {
			store := t.TempDir()
			trainer, folder := machine(t, "file://"+store)
			dir := folder.Dir(version)
			var named events.Checkpoint
			if version == 0 {
				dir = filepath.Join(t.TempDir(), "start")
				noErr(t, errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "model.safetensors"), []byte("zero"), 0o644),
					os.WriteFile(filepath.Join(dir, "tokenizer.json"), []byte("{}"), 0o644)))
				named = describe(t, dir)
			} else {
				named = write(t, folder, version, "")
			}
			for i := range 4 { // some of them are before the right one
				forge(t, store, dir, version, foreign, fmt.Sprint("forged ", i))
			}
			if right {
				noErr(t, trainer.Upload(t.Context(), version, dir))
			}
			fetch := func(named events.Checkpoint) (string, error) {
				other, _ := machine(t, "file://"+store)
				if version > 0 {
					return other.Fetch(t.Context(), version, named)
				}
				to := filepath.Join(t.TempDir(), "start")
				return to, other.FetchInitial(t.Context(), named, to)
			}
			got, err := fetch(named)
			var damaged *checkpoint.Error
			switch {
			case right && err != nil:
				t.Errorf("version %d: %v", version, err)
			case right && version < 2: // no replica fetches the optimizer's state
				raw, err := os.ReadFile(filepath.Join(got, foreign))
				if noErr(t, err); string(raw) != "{}" {
					t.Errorf("version %d has the %s %s", version, foreign, raw)
				}
			case !right && (!errors.As(err, &damaged) || !strings.Contains(err.Error(), foreign) || !strings.Contains(err.Error(), fmt.Sprintf("v%06d-", version))):
				t.Errorf("version %d with another %s: %s, %v", version, foreign, got, err)
			}
			named.FilesSHA256 = ""
			if _, err := fetch(named); err != nil {
				t.Errorf("version %d by its weights: %v", version, err)
			}
		}
	}
}
