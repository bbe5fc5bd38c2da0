package sandbox

import (
	"log/slog"
	"time"

	"codea1/events/settings"
)

// Flags are the settings of the sandbox on the command line.
type Flags struct {
	Python  string `yaml:"python" help:"CPython 3.9 or newer to run candidates with; empty: python3, then python." env:"CODEA1_PYTHON" change:"resume" scope:"machine"`
	Sandbox string `yaml:"sandbox" placeholder:"URL" help:"SandboxFusion server to run candidates on, such as http://HOST:8080; empty: this machine. The server isolates them in its own way." env:"CODEA1_SANDBOX" change:"resume" scope:"machine"`
	// The secret itself is in no configuration file.
	SandboxTokenFile string `yaml:"sandbox-token-file" placeholder:"FILE" help:"File with the secret that the SandboxFusion server asks for, and that sandbox serve asks of its clients; empty: none." env:"CODEA1_SANDBOX_TOKEN_FILE" change:"resume" scope:"machine"`

	SandboxLevel string        `yaml:"sandbox-level" help:"Weakest isolation to accept: isolated, confined (a system call filter only) or open (limits only)." default:"isolated" enum:"isolated,confined,open" change:"resume" scope:"machine"`
	Sandboxes    int           `yaml:"sandboxes" help:"Candidates that run at a time; 0 means one per core, or 16 on a server." default:"0" min:"0" max:"1024" change:"resume" scope:"machine"`
	CallTimeout  time.Duration `yaml:"call-timeout" help:"Time limit of loading a program and of each call; more where the ground truth is slow." default:"1s" min:"1ms" max:"1h" change:"resume"`
	JobTimeout   time.Duration `yaml:"job-timeout" help:"Time limit of all calls on one program; more where the ground truth is slow." default:"10s" min:"1ms" max:"24h" change:"resume"`
	MemoryMiB    int64         `yaml:"memory-mib" name:"memory-mib" help:"Memory limit of a candidate in MiB." default:"512" min:"64" max:"1048576" change:"resume"`
}

// Validate checks the flags of a command.
func (f *Flags) Validate() error {
	return settings.Check(f, func(key string) string { return "--" + key })
}

// Config returns the configuration of a pool on this machine.
func (f *Flags) Config(logger *slog.Logger) Config {
	return Config{
		Python: f.Python, Level: Level(f.SandboxLevel), Workers: f.Sandboxes,
		CallTimeout: f.CallTimeout, JobTimeout: f.JobTimeout, MemoryBytes: f.MemoryMiB << 20, Logger: logger,
	}
}
