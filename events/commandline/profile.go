package commandline

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
)

// StartProfile begins a CPU profile of this process in a directory, and returns the
// function that ends it and writes a heap profile. Without a directory it does
// nothing. The names have the process ID: several stages may share the directory.
func StartProfile(dir string) (stop func() error, err error) {
	if dir == "" {
		return func() error { return nil }, nil
	}
	name := func(kind string) string { return filepath.Join(dir, fmt.Sprintf("%s-%d.pprof", kind, os.Getpid())) }
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("--profile: %w", err)
	}
	cpu, err := os.Create(name("cpu"))
	if err != nil {
		return nil, fmt.Errorf("--profile: %w", err)
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return nil, fmt.Errorf("--profile: %w", errors.Join(err, cpu.Close()))
	}
	return func() error {
		pprof.StopCPUProfile()
		heap, err := os.Create(name("heap"))
		if err == nil {
			runtime.GC() // the profile is of the last collection
			err = errors.Join(pprof.WriteHeapProfile(heap), heap.Close())
		}
		if err = errors.Join(err, cpu.Close()); err != nil {
			return fmt.Errorf("--profile: %w", err)
		}
		return nil
	}, nil
}
