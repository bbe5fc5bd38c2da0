package main

import (
	"context"
	"io"
	"log/slog"
	"os"

	"codea1/consumers/execution/sandbox"
	"codea1/consumers/execution/sandboxfusion"
	"codea1/events/connect"
	"codea1/events/doctor"
	"codea1/gpuworker"
	"codea1/gpuworker/models"
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

// Run prints the findings. It fails if something is missing that a training with
// these settings needs.
func (d *DoctorCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger) error {
	findings := []doctor.Finding{{What: "codea1", Detail: build()}, sandboxfusion.Examine(ctx, &d.Sandbox, logger), doctor.Bus(ctx, &d.Bus), doctor.Disk(d.RunsDir)}
	findings = append(findings, models.Examine(ctx, &d.Engine)...)
	if err := ctx.Err(); err != nil {
		return err
	}
	return doctor.Print(out, d.JSON, findings)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
