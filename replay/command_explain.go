package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"codea1/events"
)

// ExplainCommand is `codea1 replay explain`.
type ExplainCommand struct {
	runArgument
	Group string      `help:"Explain this group: everything from its question to the weights it moved." placeholder:"GROUP" xor:"what"`
	Step  int         `help:"Explain the update of this training step." placeholder:"N" xor:"what"`
	Role  events.Role `help:"With --step: the model, code or test." default:"code" enum:"code,test"`
	JSON  bool        `name:"json" help:"Print JSON: of a group, one object per event; of a step, one object."`
}

var errNothingToExplain = errors.New("say what to explain: --group GROUP or --step N")

// Run prints the lineage of a group or the groups of an update.
func (c *ExplainCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger) error {
	if c.Group == "" && c.Step == 0 {
		return errNothingToExplain
	}
	l, err := c.open(logger)
	if err != nil {
		return err
	}
	if c.Group != "" {
		err = c.explainGroup(ctx, out, l)
	} else {
		err = c.explainStep(ctx, out, l)
	}
	return errors.Join(err, l.Close())
}

func (c *ExplainCommand) explainGroup(ctx context.Context, out io.Writer, l *Log) error {
	lineage, err := l.Lineage(ctx, c.Group)
	if err != nil {
		return err
	}
	if !c.JSON {
		_, err := io.WriteString(out, explainGroup(lineage))
		return err
	}
	encoder := newJSONLines(out)
	for i := range lineage.Events {
		row, err := eventRow(&lineage.Events[i])
		if err != nil {
			return err
		}
		if err := encoder.Encode(&row); err != nil {
			return err
		}
	}
	for _, u := range lineage.Updates {
		if err := encoder.Encode(map[string]any{"type": u.EventType(), "payload": payloadJSON(u)}); err != nil {
			return err
		}
	}
	return nil
}

func (c *ExplainCommand) explainStep(ctx context.Context, out io.Writer, l *Log) error {
	updates, err := l.Updates(ctx)
	if err != nil {
		return err
	}
	for _, u := range updates {
		if u.Step != c.Step || u.Role != c.Role {
			continue
		}
		shares, err := l.shares(ctx, u)
		if err != nil {
			return err
		}
		if c.JSON {
			return newJSONLines(out).Encode(map[string]any{"update": payloadJSON(u), "groups": shares})
		}
		_, err = io.WriteString(out, explainStep(u, shares))
		return err
	}
	return fmt.Errorf("step %d of role %s: no such update: %w", c.Step, c.Role, ErrNotFound)
}

// share is what one group put into an update.
type share struct {
	Group     string  `json:"group"`
	Problem   string  `json:"problem"`
	Sequences int     `json:"sequences"` // responses trained on
	Answer    int     `json:"answer"`    // role test: the answer chosen by TOPVAR; -1 otherwise
	Mean      float64 `json:"reward_mean"`
	Least     float64 `json:"advantage_min"`
	Most      float64 `json:"advantage_max"`
}

// shares returns what each group of an update put into it, in canonical order.
func (l *Log) shares(ctx context.Context, u *events.PolicyUpdated) ([]share, error) {
	run, err := l.run(ctx)
	if err != nil {
		return nil, err
	}
	shares := make([]share, 0, len(u.Groups))
	for _, group := range u.Groups {
		lineage, err := l.groupLineage(ctx, run, group)
		if err != nil {
			return nil, err
		}
		if lineage.Rewarded == nil {
			return nil, fmt.Errorf("group %s was trained on, but its reward is missing: %w", group, ErrNotFound)
		}
		shares = append(shares, shareOf(group, u.Role, lineage.Rewarded))
	}
	return shares, nil
}

func shareOf(group string, role events.Role, r *events.GroupRewarded) share {
	s := share{Group: group, Problem: r.ProblemID, Answer: -1}
	add := func(reward, advantage float64, masked bool) {
		if masked {
			return
		}
		if s.Sequences == 0 {
			s.Least, s.Most = advantage, advantage
		}
		s.Least, s.Most = min(s.Least, advantage), max(s.Most, advantage)
		s.Mean += reward
		s.Sequences++
	}
	if role == events.RoleCode {
		for i := range r.Code {
			add(r.Code[i].Reward, r.Code[i].Advantage, r.Code[i].Masked)
		}
	} else if r.TopVar >= 0 {
		s.Answer = r.TopVar
		for i := range r.Test[r.TopVar] {
			t := &r.Test[r.TopVar][i]
			add(t.Reward, t.Advantage, t.Masked)
		}
	}
	if s.Sequences > 0 {
		s.Mean /= float64(s.Sequences)
	}
	return s
}
