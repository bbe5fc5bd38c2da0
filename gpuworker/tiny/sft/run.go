package sft

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/schollz/progressbar/v3"

	"codea1/gpuworker"
	"codea1/gpuworker/tiny"
)

// run is one training.
type run struct {
	command  *Command
	engine   *tiny.Engine
	training []gpuworker.Sequence
	heldOut  []gpuworker.Sequence
	lines    io.Writer
	bar      io.Writer
}

func (r *run) train(ctx context.Context) (Report, error) {
	c, began := r.command, time.Now()
	report := Report{
		Parameters: r.engine.Parameters(), Rows: len(r.training), Heldout: len(r.heldOut), HoldoutLoss: math.NaN(),
	}
	epochs := make([][][]gpuworker.Sequence, c.Epochs)
	steps := 0
	for i := range epochs {
		epochs[i] = makeBatches(r.training, c.BatchTokens, c.Seed, i)
		steps += len(epochs[i])
	}
	fmt.Fprintf(r.lines, "%d parameters, %d rows to train on and %d held out, %d steps\n",
		report.Parameters, report.Rows, report.Heldout, steps)
	bar := progressbar.NewOptions(steps, progressbar.OptionSetWriter(r.bar), progressbar.OptionThrottle(200*time.Millisecond),
		progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish())
	for epoch, batches := range epochs {
		loss, tokens := 0.0, 0
		for _, batch := range batches {
			stats, err := r.engine.Update(ctx, batch, c.update(report.Steps, steps))
			if err != nil {
				return report, errors.Join(err, bar.Exit())
			}
			report.Steps++
			report.Tokens += countTokens(batch)
			loss += stats.Loss * float64(stats.Tokens)
			tokens += stats.Tokens
			bar.Describe(fmt.Sprintf("epoch %d/%d loss %.3f", epoch+1, c.Epochs, stats.Loss))
			if err := bar.Add(1); err != nil {
				return report, err
			}
		}
		report.TrainLoss = loss / float64(tokens)
		var err error
		if report.HoldoutLoss, err = r.holdoutLoss(ctx); err != nil {
			return report, errors.Join(err, bar.Exit())
		}
		if err := bar.Clear(); err != nil {
			return report, err
		}
		fmt.Fprintf(r.lines, "epoch %d/%d: loss %.4f, held out %.4f, %.0f tokens/s\n", epoch+1, c.Epochs,
			report.TrainLoss, report.HoldoutLoss, float64(report.Tokens)/time.Since(began).Seconds())
	}
	report.Took = time.Since(began)
	return report, bar.Finish()
}

// update returns the settings of step (from 0) of steps.
func (c *Command) update(step, steps int) gpuworker.UpdateConfig {
	return gpuworker.UpdateConfig{
		Loss: gpuworker.LossSFT, LearningRate: c.rate(step, steps), WeightDecay: c.WeightDecay,
		Beta1: c.Beta1, Beta2: c.Beta2, Epsilon: 1e-8, GradClip: c.GradClip,
	}
}

// rate returns the learning rate of step (from 0) of steps: linear warm-up, then
// half a cosine down to FinalRate at the last step.
func (c *Command) rate(step, steps int) float64 {
	return gpuworker.Schedule{
		Base: c.LearningRate, Warmup: c.Warmup, Total: max(steps-1, c.Warmup+1), MinRatio: c.FinalRate,
	}.At(step)
}

func (r *run) holdoutLoss(ctx context.Context) (float64, error) {
	scored, err := r.engine.LogProbs(ctx, gpuworker.Current, r.heldOut, 1)
	if err != nil {
		return 0, err
	}
	sum, tokens := 0.0, 0
	for _, row := range scored {
		for _, p := range row {
			sum -= float64(p)
		}
		tokens += len(row)
	}
	return sum / float64(tokens), nil // NaN when nothing is held out
}
