package sandbox

import (
	"cmp"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"time"
)

// Config sets up a Pool. A zero field means its default.
type Config struct {
	// Python is the interpreter, as a path or a name on PATH.
	// Default: python3, then python.
	Python string
	// Workers is the number of jobs at a time, each with a fork server of its own.
	// Default: GOMAXPROCS, because more than there are cores only adds latency.
	Workers int
	// CallTimeout bounds loading a program and each of its calls, in wall-clock
	// time. On Linux the time for which the candidate waits for a core does not
	// count (job_time.go). Default: 1 s.
	CallTimeout time.Duration
	// JobTimeout bounds all calls on one program together, in the same time. Calls
	// beyond it are not run. Default: 10 s.
	JobTimeout time.Duration
	// MemoryBytes bounds a child's address space. Default: 512 MiB.
	MemoryBytes int64
	// FileBytes bounds each file a child writes. Default: 1 MiB.
	FileBytes int64
	// ValueBytes bounds the literal text of one value. Default: 1 MiB.
	ValueBytes int
	// Level is the weakest level to accept. A machine that gives only weaker ones
	// is refused. Default: LevelIsolated.
	Level Level
	// CacheBytes bounds the memory of the cache of executions, roughly. Default:
	// 16 MiB; negative: no cache.
	CacheBytes int64
	// Retries is how often a job is tried again, each time in a fresh fork
	// server, after the sandbox itself failed. Default: 2; negative: none.
	Retries int
	// Logger reports fork servers that were replaced. Default: no log.
	Logger *slog.Logger

	watchOnly bool // for tests: use no control groups
}

// Complete returns the configuration with defaults in place of zeros. The error
// names a field that is out of range.
func (c Config) Complete() (Config, error) {
	c.Workers = cmp.Or(c.Workers, runtime.GOMAXPROCS(0))
	c.CallTimeout = cmp.Or(c.CallTimeout, time.Second)
	c.JobTimeout = cmp.Or(c.JobTimeout, max(10*time.Second, c.CallTimeout))
	c.MemoryBytes = cmp.Or(c.MemoryBytes, 512<<20)
	c.FileBytes = cmp.Or(c.FileBytes, 1<<20)
	c.ValueBytes = cmp.Or(c.ValueBytes, 1<<20)
	c.CacheBytes = cmp.Or(c.CacheBytes, 16<<20)
	c.Level = cmp.Or(c.Level, LevelIsolated)
	c.Retries = cmp.Or(c.Retries, 2)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c, c.validate()
}

// variedSlots is the number of varied jobs at a time. A ground truth is one program
// of a group, so they are fewer than the workers.
func (c Config) variedSlots() int { return (c.Workers + 3) / 4 }

func (c Config) validate() error {
	switch {
	case c.Workers < 0 || c.Workers > 1024:
		return fmt.Errorf("sandbox: workers: %d is outside 1 to 1024", c.Workers)
	case c.CallTimeout < time.Millisecond || c.CallTimeout > time.Hour:
		return fmt.Errorf("sandbox: call timeout: %v is outside 1ms to 1h", c.CallTimeout)
	case c.JobTimeout < c.CallTimeout || c.JobTimeout > 24*time.Hour:
		return fmt.Errorf("sandbox: job timeout: %v is outside the call timeout, %v, to 24h", c.JobTimeout, c.CallTimeout)
	case c.MemoryBytes < 64<<20:
		return fmt.Errorf("sandbox: memory: %d bytes, but Python needs 64 MiB", c.MemoryBytes)
	case c.FileBytes < 0:
		return fmt.Errorf("sandbox: file size: %d bytes is negative", c.FileBytes)
	case c.ValueBytes < 64 || c.ValueBytes > 8<<20:
		return fmt.Errorf("sandbox: value size: %d bytes is outside 64 bytes to 8 MiB", c.ValueBytes)
	case !slices.Contains(levels, c.Level):
		return fmt.Errorf("sandbox: level %q is none of %q", c.Level, levels)
	case c.Retries > 100:
		return fmt.Errorf("sandbox: retries: %d, over the limit of 100", c.Retries)
	}
	return nil
}
