package main

import (
	"os"
	"path/filepath"
	"testing"

	"codea1/events/rundir"
)

// A run whose directory was moved can be resumed.
func TestMovedRunGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, dir, train("--steps", "1", "--name", "r", "--heldout", "")...)
	if err := os.Rename(filepath.Join(dir, rundir.Default), filepath.Join(dir, "elsewhere")); err != nil {
		t.Fatal(err)
	}
	must(t, dir, "train", "--resume", "r", "--runs-dir", "elsewhere", "--steps", "2")
	read(t, filepath.Join(dir, "elsewhere", "r"), 2)
}
