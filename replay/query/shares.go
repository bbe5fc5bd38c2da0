package query

import (
	"context"
	"fmt"

	"codea1/events"
	"codea1/replay/eventlog"
)

// Share is what one group put into an update.
type Share struct {
	Group     string  `json:"group"`
	Problem   string  `json:"problem"`
	Sequences int     `json:"sequences"` // responses trained on
	Answer    int     `json:"answer"`    // role test: the answer chosen by TOPVAR; -1 otherwise
	Mean      float64 `json:"reward_mean"`
	Least     float64 `json:"advantage_min"`
	Most      float64 `json:"advantage_max"`
}

// Shares returns what each group of an update put into it, in canonical order.
func Shares(ctx context.Context, log eventlog.Reader, u *events.PolicyUpdated) ([]Share, error) {
	run, err := eventlog.RunName(ctx, log)
	if err != nil {
		return nil, err
	}
	shares := make([]Share, 0, len(u.Groups))
	for _, group := range u.Groups {
		lineage, err := Group(ctx, log, run, group)
		if err != nil {
			return nil, err
		}
		if lineage.Rewarded == nil {
			return nil, fmt.Errorf("group %s was trained on, but its reward is missing: %w", group, eventlog.ErrNotFound)
		}
		shares = append(shares, ShareOf(group, u.Role, lineage.Rewarded))
	}
	return shares, nil
}

func ShareOf(group string, role events.Role, r *events.GroupRewarded) Share {
	s := Share{Group: group, Problem: r.ProblemID, Answer: -1}
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
