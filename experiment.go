package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"codea1/consumers/evaluation"
	"codea1/consumers/experiment"
	"codea1/events"
	"codea1/events/settings"
	"codea1/gpuworker"
	"codea1/producers/curriculum"
	"codea1/producers/problems"
	"codea1/replay/eventlog"
)

// experimentHost implements experiment.Host.
type experimentHost struct {
	problems map[string]problemCounts // by the reference of a set
}

// problemCounts are the problems of a set and the defective programs that the Test
// LLM sees in an evaluation of them.
type problemCounts struct {
	problems int
	items    []evaluation.Item
	sha256   string // of the content
}

// Configure implements experiment.Host.
func (h *experimentHost) Configure(arm *experiment.Arm, seed uint64) (string, error) {
	base := arm.Preset
	if base == "" {
		base = defaultPreset
	}
	s, err := presets.Settings(base)
	if err != nil {
		return "", arm.Wrong(err)
	}
	for i := range arm.Settings {
		each := &arm.Settings[i]
		switch each.Key {
		case "seed":
			return "", each.Wrong(errors.New("the field seeds has the seeds of all runs"))
		case "runs-dir":
			return "", each.Wrong(errors.New("--dir names the directory of all runs"))
		}
		if err := settings.Set(&s.RunSettings, each.Key, each.Value); err != nil {
			return "", each.Wrong(err)
		}
	}
	s.Curriculum.Seed = seed
	if err := s.validate(func(key string) string { return "--" + key }); err != nil {
		return "", arm.Wrong(err)
	}
	// The same file gives the same runs in every environment.
	now := new(RunSettings)
	if err := settings.Resolve(now, &s.RunSettings, envPrefix); err != nil {
		return "", err
	}
	if changed := settings.Differences(&s.RunSettings, now, func(f *settings.Field) bool { return !settings.OfMachine(f) }); len(changed) > 0 {
		key := changed[0].Is.Key
		return "", fmt.Errorf("%s would change the runs of the experiment: unset it, and set %s in the file", settings.Variable(envPrefix, key), key)
	}
	return configText(s, &s.Bus)
}

// Differences implements experiment.Host.
func (h *experimentHost) Differences(dir, config string) (string, error) {
	begun, err := openBegun(context.Background(), dir)
	if err != nil || begun == nil {
		return "", err
	}
	now, err := presets.Read("of the experiment", []byte(config), "")
	if err != nil {
		return "", err
	}
	var all []string
	for _, d := range settings.Differences(&begun.RunSettings, &now.RunSettings, func(f *settings.Field) bool { return !settings.OfMachine(f) }) {
		all = append(all, fmt.Sprintf("%s is %s, but the run has begun with %s", d.Is.Key, d.Is.Brief(), d.Was.Brief()))
	}
	return strings.Join(all, "; "), nil
}

// Identity implements experiment.Host.
func (h *experimentHost) Identity(ctx context.Context, config string) (*experiment.Identity, error) {
	s, err := presets.Read("of the experiment", []byte(config), "")
	if err != nil {
		return nil, err
	}
	base := new(RunSettings)
	if err := settings.Defaults(base); err != nil {
		return nil, err
	}
	id := &experiment.Identity{Settings: map[string]string{}, Defaults: map[string]string{}}
	defaults := settings.Fields(base)
	for i, f := range settings.Fields(&s.RunSettings) {
		if f.Key != "seed" && !settings.OfMachine(&f) {
			id.Settings[f.Key], id.Defaults[f.Key] = f.Brief(), defaults[i].Brief()
		}
	}
	training, err := h.count(ctx, s.Data.Problems, s.Data.OnBadRow)
	if err != nil {
		return nil, err
	}
	id.Problems = training.sha256
	if s.Data.Heldout != "" {
		heldout, err := h.count(ctx, s.Data.Heldout, s.Data.OnBadRow)
		if err != nil {
			return nil, err
		}
		id.Heldout = heldout.sha256
	}
	return id, nil
}

// Visit implements experiment.Host.
func (h *experimentHost) Visit(ctx context.Context, dir string, types []events.Type, visit func(e *events.Event, compacted int64)) (bool, error) {
	return eventlog.VisitRun(ctx, dir, types, func(record *eventlog.Record, e *events.Event) error {
		tokens := 0
		for _, n := range record.Tokens {
			tokens += n
		}
		visit(e, int64(tokens))
		return nil
	})
}

// HasTest implements experiment.Host.
func (h *experimentHost) HasTest(config string) (bool, error) {
	s, err := presets.Read("of the experiment", []byte(config), "")
	return err == nil && !s.models().WithoutTest(), err
}

// CheckEvaluation implements experiment.Host.
func (h *experimentHost) CheckEvaluation(args []string) error {
	parser, err := newParser(new(CLI), kong.Writers(io.Discard, io.Discard))
	if err == nil {
		_, err = parser.Parse(args)
	}
	return err
}

// Content implements experiment.Host.
func (h *experimentHost) Content(ctx context.Context, set string) (string, error) {
	c, err := h.count(ctx, set, problems.FailOnBadRows)
	return c.sha256, err
}

// Cost implements experiment.Host.
func (h *experimentHost) Cost(ctx context.Context, config string) (experiment.Cost, error) {
	s, err := presets.Read("of the experiment", []byte(config), "")
	if err != nil {
		return experiment.Cost{}, err
	}
	training, err := h.count(ctx, s.Data.Problems, s.Data.OnBadRow)
	if err != nil {
		return experiment.Cost{}, err
	}
	posed := training.problems
	if n := s.Curriculum.TrainProblems; n > 0 {
		posed = min(posed, n)
	}
	c := experiment.Cost{Steps: s.steps(posed)}
	answers, suites := int64(s.Curriculum.Answers), int64(s.Curriculum.Answers*s.Curriculum.Suites)
	if s.models().WithoutTest() {
		suites = 0
	}
	step := int64(s.Curriculum.ProblemsPerStep) * (answers*int64(s.Curriculum.CodeTokens) + suites*int64(s.Curriculum.TestTokens))
	c.Tokens = int64(c.Steps) * step
	evals, err := h.evaluation(ctx, s)
	if err != nil {
		return experiment.Cost{}, err
	}
	c.Tokens += evals * int64(s.Curriculum.Evaluations(c.Steps))
	if s.Engine.Engine == gpuworker.EngineTiny && step > 0 {
		perStep, err := s.modelConfig().StepTime()
		if err != nil {
			return experiment.Cost{}, err
		}
		c.Time = time.Duration(float64(perStep) * float64(c.Tokens) / float64(step))
	}
	return c, nil
}

// evaluation returns the most tokens of one evaluation.
func (h *experimentHost) evaluation(ctx context.Context, s *Settings) (int64, error) {
	if s.Data.Heldout == "" {
		return 0, nil
	}
	heldout, err := h.count(ctx, s.Data.Heldout, s.Data.OnBadRow)
	if err != nil {
		return 0, err
	}
	items := heldout.items
	if n := s.Evaluation.EvalProblems; n > 0 {
		items = items[:min(n, len(items))]
	}
	groups, err := evaluation.Groups(curriculum.Tag(0), items, s.evaluation())
	if err != nil {
		return 0, err
	}
	return evaluation.MostTokens(groups), nil
}

// count reads a problem set, once.
func (h *experimentHost) count(ctx context.Context, set string, onBadRow problems.BadRowPolicy) (problemCounts, error) {
	if c, ok := h.problems[set]; ok {
		return c, nil
	}
	all, _, err := problems.ReadAll(ctx, set, problems.LoadOptions{OnBadRow: onBadRow})
	if err != nil {
		return problemCounts{}, err
	}
	c := problemCounts{problems: len(all)}
	if c.sha256, err = problems.SHA256(all); err != nil {
		return problemCounts{}, err
	}
	for i := range all {
		posable, _ := all[i].Posable(true)
		c.items = append(c.items, heldoutItem(&all[i], posable))
	}
	h.problems[set] = c
	return c, nil
}
