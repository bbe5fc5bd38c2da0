package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"codea1/events"
	"codea1/replay/eventlog"
	"codea1/replay/export"
	"codea1/replay/fork"
)

// RetrainCommand is `codea1 replay retrain`.
type RetrainCommand struct {
	runArgument
	Role []events.Role `help:"Only this model, code or test." enum:"code,test" default:"code,test"`
	JSON bool          `name:"json" help:"Print one JSON object per model."`
}

// Run repeats the logged training and compares the weights of every version.
func (c *RetrainCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger, parent *Command) error {
	if parent.Retrainer == nil {
		return fork.ErrNoRetrainer
	}
	return c.read(logger, func(l *eventlog.Log) error {
		models, err := eventlog.Models(ctx, l)
		if err != nil {
			return err
		}
		work, err := os.MkdirTemp("", "codea1-retrain-*")
		if err != nil {
			return err
		}
		for _, role := range models.TrainedRoles() {
			if !slices.Contains(c.Role, role) {
				continue
			}
			if err = c.retrain(ctx, out, l, parent.Retrainer, role, work); err != nil {
				break
			}
		}
		return errors.Join(err, os.RemoveAll(work))
	})
}

func (c *RetrainCommand) retrain(ctx context.Context, out io.Writer, l *eventlog.Log, trainer fork.Retrainer, role events.Role, work string) error {
	folder := filepath.Join(work, string(role))
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	var m *meter
	same, err := fork.Retrain(ctx, l, trainer, role, filepath.Dir(l.Dir()), folder, func(done, versions int) {
		if m == nil {
			m = newSlowMeter(fmt.Sprintf("training %s again", role), uint64(versions))
		}
		m.to(uint64(done))
	})
	m.finish()
	if err != nil {
		return err
	}
	if c.JSON {
		return export.NewLines(out).Encode(struct {
			Role string `json:"role"`
			Same int    `json:"same"` // versions with the same weights: all of them
		}{string(role), same})
	}
	_, err = fmt.Fprintf(out, "%s: %d versions trained again, each with the same weights\n", role, same)
	return err
}
