package sandbox

import (
	"log/slog"
	"time"
)

// Flags are the settings of the sandbox on a command line.
type Flags struct {
	Python       string        `help:"CPython 3.9 or newer to run candidates with; empty: python3, then python." env:"CODEA1_PYTHON"`
	Sandbox      string        `placeholder:"URL" help:"SandboxFusion server to run candidates on, such as http://HOST:8080; empty: this machine. How they are isolated is that server's own affair." env:"CODEA1_SANDBOX"`
	SandboxLevel string        `help:"Least isolation to accept: isolated, confined (a system call filter only) or open (limits only)." default:"isolated" enum:"isolated,confined,open"`
	Sandboxes    int           `help:"Candidates that run at a time; 0 means one per core, or 16 on a server." default:"0"`
	CallTimeout  time.Duration `help:"Time limit of loading a program and of each call." default:"1s"`
	JobTimeout   time.Duration `help:"Time limit of all calls on one program." default:"10s"`
	MemoryMiB    int64         `name:"memory-mib" help:"Memory limit of a candidate in MiB." default:"512"`
}

// Config returns the pool's configuration.
func (f *Flags) Config(logger *slog.Logger) Config {
	return Config{
		Python: f.Python, Level: Level(f.SandboxLevel), Workers: f.Sandboxes,
		CallTimeout: f.CallTimeout, JobTimeout: f.JobTimeout, MemoryBytes: f.MemoryMiB << 20, Logger: logger,
	}
}
