package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"codea1/consumers/execution/judging"
	"codea1/events"
	"codea1/gpuworker"
	"codea1/gpuworker/openai"
)

// checkJudges refuses a run with a judge that this machine cannot have, before the run
// begins.
func (r *runner) checkJudges(ctx context.Context) error {
	if slices.Contains(r.settings.Reward.Judges(), events.JudgeFindings) {
		if _, err := judging.New(ctx, judging.Config{Judges: []events.Judge{events.JudgeFindings}, Pool: r.pool}); err != nil {
			return err
		}
	}
	if !judging.Asks(r.settings.Reward.Judges()) {
		return nil
	}
	model, err := openJudge(r.settings, r.Logger)
	if err != nil {
		return err
	}
	defer model.Close()
	verdict := slices.Contains(r.settings.Reward.Judges(), events.JudgeVerdict)
	switch err := judging.Check(ctx, judgeModel{model.Once()}, verdict); {
	case errors.Is(err, openai.ErrBusy):
		r.Logger.Warn("the judge's server is busy or starting", "server", r.settings.Judge.JudgeServer, "error", err)
		return nil
	case err != nil:
		return fmt.Errorf("the judge model %s at %s does not judge `x = 1`: start its server, or correct --judge-server and --judge-model: %w",
			r.settings.Judge.JudgeModel, r.settings.Judge.JudgeServer, err)
	}
	return nil
}

// openJudge returns the judge model. It sends nothing.
func openJudge(s *RunSettings, logger *slog.Logger) (*openai.Sampler, error) {
	j := &s.Judge
	if j.JudgeServer == "" {
		return nil, errors.New("a reward of the run needs a judge model: give the address of its server with --judge-server")
	}
	model, err := openai.New(openai.Options{URL: j.JudgeServer, Model: j.JudgeModel, KeyFile: j.JudgeKeyFile, CAFile: j.JudgeCAFile, Logger: logger})
	if err != nil {
		return nil, judgeError{err}
	}
	return model, nil
}

// judgeError is an error about the flags of a model's server that names those of a judge.
type judgeError struct{ error }

var judgeFlags = strings.NewReplacer("--server-key-file", "--judge-key-file", "--server-ca-file", "--judge-ca-file", "--server", "--judge-server", "--model", "--judge-model")

func (e judgeError) Error() string { return judgeFlags.Replace(e.error.Error()) }

func (e judgeError) Unwrap() error { return e.error }

// judgeModel is a model on a server as a judge.
type judgeModel struct{ *openai.Sampler }

// Name implements judging.Model.
func (j judgeModel) Name() string { return j.Model() }

// Score implements judging.Model. The reward model reads the question and the code as
// CodeScaler's does: as a chat of one turn.
func (j judgeModel) Score(ctx context.Context, question, code string) (float64, error) {
	score, err := j.Sampler.Score(ctx, []gpuworker.Message{{Role: "user", Content: question}, {Role: "assistant", Content: code}})
	return score, unjudged(err)
}

// Safe implements judging.Model.
func (j judgeModel) Safe(ctx context.Context, question, code string) (bool, error) {
	return judging.Verdict(ctx, j.ask, question, code)
}

// ask implements judging.Ask.
func (j judgeModel) ask(ctx context.Context, prompt string, tokens int) (response string, ended bool, err error) {
	completions, err := j.Sample(ctx, []gpuworker.SampleRequest{{
		Messages: []gpuworker.Message{{Role: "user", Content: prompt}}, Seeds: []uint64{1},
	}}, gpuworker.SamplingParams{Temperature: 1, TopP: 1, TopK: 1, MaxTokens: tokens})
	if err != nil {
		return "", false, unjudged(err)
	}
	return completions[0][0].Text, completions[0][0].Finish != events.FinishLength, nil
}

// unjudged marks the error of a request that the server refuses for its content.
func unjudged(err error) error {
	if errors.Is(err, openai.ErrRefused) || errors.Is(err, openai.ErrProtocol) {
		return fmt.Errorf("%w: %w", judging.ErrUnjudged, err)
	}
	return err
}
