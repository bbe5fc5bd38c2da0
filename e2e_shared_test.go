package main

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// sharedSteps is the number of steps of the run that tests share.
const sharedSteps = 3

// sharedRun is a completed run with the name r and the table that its training
// printed. It has two sandboxes and keeps only the newest checkpoint of a model.
var sharedRun struct {
	sync.Once
	dir, table string
}

// completedRun returns the directory of the shared run, which tests only read or
// copy.
func completedRun(t *testing.T) string {
	t.Helper()
	sharedRun.Do(func() {
		dir, err := os.MkdirTemp("", "codea1-shared-")
		if err != nil {
			t.Fatal(err)
		}
		sharedRun.dir = dir
		sharedRun.table = must(t, dir, train("--steps", strconv.Itoa(sharedSteps), "--name", "r", "--sandboxes", "2", "--keep-checkpoints", "1",
			"--track", "wandb,csv", "--wandb-python", filepath.Join(dir, "none"))...)
	})
	if sharedRun.table == "" {
		t.Fatal("the training of the shared run failed")
	}
	return sharedRun.dir
}

// copied returns a directory with a copy of the shared run.
func copied(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(completedRun(t))); err != nil {
		t.Fatal(err)
	}
	return dir
}
