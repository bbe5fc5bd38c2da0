package query

import (
	"context"
	"fmt"

	"codea1/events"
	"codea1/replay/eventlog"
)

// Share describes the part of a group in an update.
type Share struct {
	Group     string  `json:"group"`
	Problem   string  `json:"problem"`
	Sequences int     `json:"sequences"` // completions trained on
	Answer    int     `json:"answer"`    // role test: the answer chosen by TOPVAR; -1 otherwise
	Mean      float64 `json:"reward_mean"`
	Least     float64 `json:"advantage_min"`
	Most      float64 `json:"advantage_max"`
}

// Shares returns the shares of an update's groups, in canonical order.
func Shares(ctx context.Context, log eventlog.Reader, u *events.PolicyUpdated) ([]Share, error) {
	run, err := eventlog.RunName(ctx, log)
	if err != nil {
		return nil, err
	}
	models, err := eventlog.Models(ctx, log)
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
		shares = append(shares, ShareOf(group, u.Role, models, lineage.Rewarded))
	}
	return shares, nil
}

// ShareOf returns the share of a rewarded group in an update of a role. A model that
// samples in both roles is trained on answers and suites.
func ShareOf(group string, role events.Role, models events.Models, r *events.GroupRewarded) Share {
	s := Share{Group: group, Problem: r.ProblemID, Answer: -1}
	completions := Answers(r)
	switch {
	case role == events.RoleTest:
		s.Answer = r.TopVar
		completions = Suites(r, r.TopVar)
	case models.Shared():
		completions = append(completions, Suites(r, r.TopVar)...)
	}
	for _, c := range completions {
		if c.Masked {
			continue
		}
		if s.Sequences == 0 {
			s.Least, s.Most = c.Advantage, c.Advantage
		}
		s.Least, s.Most = min(s.Least, c.Advantage), max(s.Most, c.Advantage)
		s.Mean += c.Reward
		s.Sequences++
	}
	if s.Sequences > 0 {
		s.Mean /= float64(s.Sequences)
	}
	return s
}
