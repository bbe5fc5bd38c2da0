package main

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"codea1/events/rundir"
)

// A run whose directory was moved can be resumed.
func TestMovedRunGoesOn(t *testing.T) {
	t.Parallel()
	dir := copied(t)
	const steps = sharedSteps + 1
	if err := os.Rename(filepath.Join(dir, rundir.Default), filepath.Join(dir, "elsewhere")); err != nil {
		t.Fatal(err)
	}
	must(t, dir, "train", "--resume", "r", "--runs-dir", "elsewhere", "--steps", strconv.Itoa(steps))
	read(t, filepath.Join(dir, "elsewhere", "r"), steps)
}
