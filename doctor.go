package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"codea1/consumers/execution/sandbox"
	"codea1/consumers/execution/sandboxfusion"
	"codea1/events/connect"
	"codea1/events/files"
	"codea1/events/machine"
	"codea1/events/natsbus"
	"codea1/gpuworker"
	"codea1/gpuworker/tiny/kernel"
	"codea1/gpuworker/torch"
)

// DoctorCommand is `codea1 doctor`: it examines whether this machine has the needs of
// a training.
type DoctorCommand struct {
	RunsDir string                `yaml:"runs-dir" help:"Directory that holds the run directories." default:"runs" placeholder:"DIR"`
	Engine  gpuworker.EngineFlags `embed:"" yaml:",inline" group:"Engine"`
	Bus     connect.Flags         `embed:"" yaml:",inline" group:"Message bus"`
	Sandbox sandbox.Flags         `embed:"" yaml:",inline" group:"Sandbox"`
	JSON    bool                  `name:"json" help:"Print one JSON object per finding."`
}

// leastDisk and leastMemory are enough for the embedded models and a run of a few
// hundred steps.
const (
	leastDisk   = 1 << 30
	leastMemory = 1 << 30
)

// errMissing says that a training with these settings cannot run here.
var errMissing = errors.New("found something missing")

// finding is the result of one examination. A finding with an error and without
// needed is a note.
type finding struct {
	what   string
	detail string
	err    error // with the remedy
	needed bool
}

// word says whether a training can run with the finding.
func (f *finding) word() string {
	switch {
	case f.err == nil:
		return "ok"
	case f.needed:
		return "MISSING"
	}
	return "note"
}

// Run prints the findings. It fails if something is missing that a training with
// these settings needs.
func (d *DoctorCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger) error {
	findings := []finding{{what: "codea1", detail: build()}}
	findings = append(findings, d.sandbox(ctx, logger), d.bus(ctx), d.disk(), memory(os.DirFS("/")))
	findings = append(findings, finding{what: "engine tiny", detail: "kernel " + kernel.Name()})
	findings = append(findings, d.torch(ctx)...)
	if err := ctx.Err(); err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	lines := json.NewEncoder(out)
	missing := 0
	for _, f := range findings {
		detail := f.detail
		if f.err != nil {
			detail = strings.ReplaceAll(strings.TrimSpace(f.err.Error()), "\n", " | ")
		}
		if f.word() == "MISSING" {
			missing++
		}
		if d.JSON {
			if err := lines.Encode(map[string]string{"result": strings.ToLower(f.word()), "what": f.what, "detail": detail}); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", f.word(), f.what, detail)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if missing > 0 {
		return fmt.Errorf("%d of %d examinations %w", missing, len(findings), errMissing)
	}
	return nil
}

func (d *DoctorCommand) sandbox(ctx context.Context, logger *slog.Logger) finding {
	f := finding{what: "sandbox", needed: true}
	pool, err := sandboxfusion.Open(ctx, &d.Sandbox, logger)
	if err != nil {
		f.err = err
		return f
	}
	about := pool.Describe()
	f.detail, f.err = fmt.Sprintf("%s: %s; %s", about.Level, about.Isolation, about.Python), pool.Close()
	return f
}

func (d *DoctorCommand) bus(ctx context.Context) finding {
	f := finding{what: "bus", detail: connect.PublicURL(d.Bus.URL), needed: true}
	if d.Bus.URL == connect.Embedded {
		f.err = natsbus.CheckPort(0)
	} else {
		f.err = d.Bus.CheckReachable(ctx)
	}
	return f
}

// disk examines the file system of the runs directory, or of the nearest directory
// above it that exists.
func (d *DoctorCommand) disk() finding {
	f := finding{what: "disk", needed: true}
	dir, err := filepath.Abs(d.RunsDir)
	for err == nil && !exists(dir) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	var free uint64
	if err == nil {
		free, err = files.Free(dir)
	}
	if err == nil && free >= leastDisk {
		err = writable(dir)
	}
	switch {
	case err != nil:
		f.err = fmt.Errorf("--runs-dir %s: %w; choose a directory on a disk that this user may write to", d.RunsDir, err)
	case free < leastDisk:
		f.err = fmt.Errorf("%s has %s free, want %s: free some, or choose another disk with --runs-dir", dir, machine.Bytes(free), machine.Bytes(leastDisk))
	default:
		f.detail = fmt.Sprintf("%s has %s free", dir, machine.Bytes(free))
	}
	return f
}

// writable returns an error if no directory can be made in dir.
func writable(dir string) error {
	made, err := os.MkdirTemp(dir, ".codea1-doctor-")
	if err != nil {
		return err
	}
	return os.Remove(made)
}

func memory(root fs.FS) finding {
	f := finding{what: "memory"}
	available, known := machine.AvailableMemory(root)
	switch {
	case !known:
		f.err = errors.New("this system does not say how much memory is available")
	case available < leastMemory:
		f.err = fmt.Errorf("%s are available, a training of the embedded models takes up to %s", machine.Bytes(available), machine.Bytes(leastMemory))
	default:
		f.detail = machine.Bytes(available) + " available"
	}
	return f
}

// torch examines the Python of the torch engine and the GPUs. It is needed only for
// that engine.
func (d *DoctorCommand) torch(ctx context.Context) []finding {
	needed := d.Engine.Engine == gpuworker.EngineTorch
	engine := finding{what: "engine torch", needed: needed}
	report, err := torch.Examine(ctx, d.Engine.TorchPython)
	if err == nil && len(report.Missing) > 0 {
		names := slices.Sorted(maps.Keys(report.Missing))
		err = fmt.Errorf("%s cannot be imported: %s; %s", strings.Join(names, ", "), report.Missing[names[0]], torch.Install)
	}
	if err == nil && d.Engine.LoRARank > 0 && report.Libraries["peft"] == "" {
		err = errors.New("--lora-rank needs the Python package peft: `pip install './gpuworker/torch/python[peft]'` in the source of codea1 installs it")
	}
	if err == nil && d.Engine.Sampler == gpuworker.SamplerVLLM && report.VLLM != "" {
		err = errors.New(report.VLLM)
	}
	if engine.err = err; err != nil {
		return []finding{engine}
	}
	engine.detail = fmt.Sprintf("codea1_torch %s, Python %s, torch %s, transformers %s", report.Package, report.Python, report.Libraries["torch"], report.Libraries["transformers"])
	gpu := finding{what: "GPU", needed: needed && strings.HasPrefix(d.Engine.Device, "cuda")}
	switch {
	case report.CUDA == "":
		gpu.err = errors.New("this torch is built for the CPU only: install one with CUDA from https://pytorch.org; on the CPU only small models train in bearable time")
	case len(report.Devices) == 0:
		gpu.err = fmt.Errorf("torch is built for CUDA %s, but finds no NVIDIA GPU: check nvidia-smi and the version of the driver; on the CPU only small models train in bearable time", report.CUDA)
	}
	found := []finding{engine}
	// cuda alone is the first GPU.
	if number, _ := strconv.Atoi(strings.TrimPrefix(d.Engine.Device, "cuda:")); gpu.err == nil && gpu.needed && number >= len(report.Devices) {
		gpu.err = fmt.Errorf("--device %s does not exist: this machine has %d GPUs, from cuda:0", d.Engine.Device, len(report.Devices))
	}
	for i, device := range report.Devices {
		found = append(found, finding{what: fmt.Sprintf("cuda:%d", i), detail: fmt.Sprintf("%s, %s of %s free", device.Name, machine.Bytes(device.Free), machine.Bytes(device.Total))})
	}
	if gpu.err != nil {
		found = append(found, gpu)
	}
	return found
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
