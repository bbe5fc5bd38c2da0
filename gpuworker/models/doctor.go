package models

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"codea1/events/doctor"
	"codea1/events/machine"
	"codea1/gpuworker"
	"codea1/gpuworker/tiny/kernel"
	"codea1/gpuworker/torch"
)

// leastMemory is enough for the embedded models.
const leastMemory = 1 << 30

// Examine examines the memory of this machine and the engines.
func Examine(ctx context.Context, flags *gpuworker.EngineFlags) []doctor.Finding {
	found := []doctor.Finding{memory(os.DirFS("/")), {What: "engine tiny", Detail: "kernel " + kernel.Name()}}
	return append(found, examineTorch(ctx, flags)...)
}

func memory(root fs.FS) doctor.Finding {
	f := doctor.Finding{What: "memory"}
	available, known := machine.AvailableMemory(root)
	switch {
	case !known:
		f.Err = errors.New("this system does not say how much memory is available")
	case available < leastMemory:
		f.Err = fmt.Errorf("%s are available, a training of the embedded models takes up to %s", machine.Bytes(available), machine.Bytes(leastMemory))
	default:
		f.Detail = machine.Bytes(available) + " available"
	}
	return f
}

// examineTorch examines the Python of the torch engine and the GPUs. It is needed only for
// that engine.
func examineTorch(ctx context.Context, flags *gpuworker.EngineFlags) []doctor.Finding {
	needed := flags.Engine == gpuworker.EngineTorch
	engine := doctor.Finding{What: "engine torch", Needed: needed}
	report, err := torch.Examine(ctx, flags.TorchPython)
	if err == nil && len(report.Missing) > 0 {
		names := slices.Sorted(maps.Keys(report.Missing))
		err = fmt.Errorf("%s cannot be imported: %s; %s", strings.Join(names, ", "), report.Missing[names[0]], torch.Install)
	}
	if err == nil && flags.LoRARank > 0 && report.Libraries["peft"] == "" {
		err = errors.New("--lora-rank needs the Python package peft: `pip install './gpuworker/torch/python[peft]'` in the source of codea1 installs it")
	}
	if err == nil && flags.Sampler == gpuworker.SamplerVLLM && report.VLLM != "" {
		err = errors.New(report.VLLM)
	}
	if engine.Err = err; err != nil {
		return []doctor.Finding{engine}
	}
	engine.Detail = fmt.Sprintf("codea1_torch %s, Python %s, torch %s, transformers %s", report.Package, report.Python, report.Libraries["torch"], report.Libraries["transformers"])
	gpu := doctor.Finding{What: "GPU", Needed: needed && strings.HasPrefix(flags.Device, "cuda")}
	switch {
	case report.CUDA == "":
		gpu.Err = errors.New("this torch is built for the CPU only: install one with CUDA from https://pytorch.org; on the CPU only small models train in bearable time")
	case len(report.Devices) == 0:
		gpu.Err = fmt.Errorf("torch is built for CUDA %s, but finds no NVIDIA GPU: check nvidia-smi and the version of the driver; on the CPU only small models train in bearable time", report.CUDA)
	}
	found := []doctor.Finding{engine}
	// cuda alone is the first GPU.
	if number, _ := strconv.Atoi(strings.TrimPrefix(flags.Device, "cuda:")); gpu.Err == nil && gpu.Needed && number >= len(report.Devices) {
		gpu.Err = fmt.Errorf("--device %s does not exist: this machine has %d GPUs, from cuda:0", flags.Device, len(report.Devices))
	}
	for i, device := range report.Devices {
		found = append(found, doctor.Finding{What: fmt.Sprintf("cuda:%d", i), Detail: fmt.Sprintf("%s, %s of %s free", device.Name, machine.Bytes(device.Free), machine.Bytes(device.Total))})
	}
	if gpu.Err != nil {
		found = append(found, gpu)
	}
	return found
}
