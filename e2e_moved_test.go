package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"codea1/events/rundir"
)

// A completed run whose directory was moved can be resumed with more steps, which go
// on where it stopped.
func TestMovedRunGoesOn(t *testing.T) {
	onlyThorough(t, "a resumed run takes the same way")
	t.Parallel()
	dir := copied(t)
	const steps = sharedSteps + 1
	if err := os.Rename(filepath.Join(dir, rundir.Default), filepath.Join(dir, "elsewhere")); err != nil {
		t.Fatal(err)
	}
	table := must(t, dir, "train", "--resume", "r", "--runs-dir", "elsewhere", "--steps", strconv.Itoa(steps))
	if want := "Run r: 4 of 4 steps, completed in attempt 2"; !strings.Contains(table, want) {
		t.Errorf("no %q:\n%s", want, table)
	}
	longer := read(t, filepath.Join(dir, "elsewhere", "r"), steps)
	for name, sum := range read(t, runPath(completedRun(t), "r"), sharedSteps).Weights {
		if longer.Weights[name] != sum {
			t.Errorf("%s has changed", name)
		}
	}
}
