package sandbox

import (
	"os"
	"sync"
	"testing"
)

// TestRootsAreNotSwept has pools make their directories at once. Each removes
// the directories that it takes for abandoned. None loses one that it has locked.
func TestRootsAreNotSwept(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var making sync.WaitGroup
	for range 8 {
		making.Go(func() {
			for range 100 {
				root, lock, err := makeRoot()
				if err != nil {
					t.Error(err)
					return
				}
				if err := os.Mkdir(root+"/work", 0o700); err != nil {
					t.Error(err)
				}
				_ = lock.Close() // as a pool that is killed leaves it
			}
		})
	}
	making.Wait()
	_, lock, err := makeRoot()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) != 1 {
		t.Errorf("%d directories are left, %v; want the last one's", len(left), err)
	}
}
