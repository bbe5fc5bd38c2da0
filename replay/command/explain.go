package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"codea1/events"
	"codea1/events/commandline"
	"codea1/replay/eventlog"
	"codea1/replay/export"
	"codea1/replay/query"
)

// ExplainCommand is `codea1 replay explain`.
type ExplainCommand struct {
	runArgument
	Group string      `help:"Explain this group: from its problem to the weights that were trained on it." placeholder:"GROUP" xor:"subject"`
	Step  int         `help:"Explain the update of this training step." placeholder:"N" min:"0" xor:"subject"`
	Role  events.Role `help:"With --step: the model, code or test." default:"code" enum:"code,test"`
	JSON  bool        `name:"json" help:"Print JSON: of a group, one object per event; of a step, one object."`
}

var errNothingToExplain = commandline.Wrong(errors.New("name a subject: --group GROUP or --step N"))

// Run prints the lineage of a group or the groups of an update.
func (c *ExplainCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger) error {
	if c.Group == "" && c.Step == 0 {
		return errNothingToExplain
	}
	return c.read(logger, func(l *eventlog.Log) error {
		if c.Group != "" {
			return c.explainGroup(ctx, out, l)
		}
		return c.explainStep(ctx, out, l)
	})
}

func (c *ExplainCommand) explainGroup(ctx context.Context, out io.Writer, l *eventlog.Log) error {
	lineage, err := query.Explain(ctx, l, c.Group)
	if errors.Is(err, eventlog.ErrNotFound) {
		return commandline.Wrong(fmt.Errorf("%w; `codea1 replay explain RUN --step N` lists the groups of a step", err))
	}
	if err != nil {
		return err
	}
	if !c.JSON {
		_, err := io.WriteString(out, explainGroup(lineage))
		return err
	}
	encoder := export.NewLines(out)
	for i := range lineage.Events {
		row, err := export.NewEventRow(&lineage.Events[i])
		if err != nil {
			return err
		}
		if err := encoder.Encode(&row); err != nil {
			return err
		}
	}
	for _, u := range lineage.Updates {
		if err := encoder.Encode(map[string]any{"type": u.EventType(), "payload": export.Payload(u)}); err != nil {
			return err
		}
	}
	return nil
}

func (c *ExplainCommand) explainStep(ctx context.Context, out io.Writer, l *eventlog.Log) error {
	updates, err := eventlog.Updates(ctx, l)
	if err != nil {
		return err
	}
	for _, u := range updates {
		if u.Step != c.Step || u.Role != c.Role {
			continue
		}
		shares, err := query.Shares(ctx, l, u)
		if err != nil {
			return err
		}
		if c.JSON {
			return export.NewLines(out).Encode(map[string]any{"update": export.Payload(u), "groups": shares})
		}
		_, err = io.WriteString(out, explainStep(u, shares))
		return err
	}
	return commandline.Wrong(fmt.Errorf("step %d of role %s: no such update: %w; `codea1 replay state RUN` shows the newest versions", c.Step, c.Role, eventlog.ErrNotFound))
}
