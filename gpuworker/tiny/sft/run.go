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

// train trains the engine, with a line per epoch on lines and a progress bar on w.
func (c *Command) train(ctx context.Context, engine *tiny.Engine, training, heldOut []gpuworker.Sequence, lines, w io.Writer) (Report, error) {
	began := time.Now()
	report := Report{Rows: len(training), Heldout: len(heldOut), HoldoutLoss: math.NaN()}
	epochs := make([][][]gpuworker.Sequence, c.Epochs)
	steps := 0
	for i := range epochs {
		epochs[i] = makeBatches(training, c.BatchTokens, c.Seed, i)
		steps += len(epochs[i])
	}
	fmt.Fprintf(lines, "%d parameters, %d rows to train on and %d held out, %d steps\n",
		engine.Parameters(), report.Rows, report.Heldout, steps)
	schedule, step, allTokens := c.schedule(steps), 0, 0
	bar := progressbar.NewOptions(steps, progressbar.OptionSetWriter(w), progressbar.OptionThrottle(200*time.Millisecond),
		progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish())
	for epoch, batches := range epochs {
		loss, tokens := 0.0, 0
		for _, batch := range batches {
			stats, err := engine.Update(ctx, batch, gpuworker.UpdateConfig{
				Loss: gpuworker.LossSFT, LearningRate: schedule.At(step), WeightDecay: c.WeightDecay,
				Beta1: c.Beta1, Beta2: c.Beta2, Epsilon: 1e-8, GradClip: c.GradClip,
			})
			if err != nil {
				return report, errors.Join(err, bar.Exit())
			}
			step++
			allTokens += countTokens(batch)
			loss += stats.Loss * float64(stats.Tokens)
			tokens += stats.Tokens
			bar.Describe(fmt.Sprintf("epoch %d/%d loss %.3f", epoch+1, c.Epochs, stats.Loss))
			if err := bar.Add(1); err != nil {
				return report, err
			}
		}
		report.TrainLoss = loss / float64(tokens)
		var err error
		if report.HoldoutLoss, err = holdoutLoss(ctx, engine, heldOut); err != nil {
			return report, errors.Join(err, bar.Exit())
		}
		if err := bar.Clear(); err != nil {
			return report, err
		}
		fmt.Fprintf(lines, "epoch %d/%d: loss %.4f, held out %.4f, %.0f tokens/s\n", epoch+1, c.Epochs,
			report.TrainLoss, report.HoldoutLoss, float64(allTokens)/time.Since(began).Seconds())
	}
	return report, bar.Finish()
}

// schedule returns the learning rates: linear warm-up, then half a cosine down to
// FinalRate at the last step.
func (c *Command) schedule(steps int) gpuworker.Schedule {
	return gpuworker.Schedule{
		Base: c.LearningRate, Warmup: c.Warmup, Total: max(steps-1, c.Warmup+1), MinRatio: c.FinalRate,
	}
}

// holdoutLoss returns NaN if no row is held out.
func holdoutLoss(ctx context.Context, engine *tiny.Engine, heldOut []gpuworker.Sequence) (float64, error) {
	scored, err := engine.LogProbs(ctx, gpuworker.Current, heldOut, 1)
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
	return sum / float64(tokens), nil
}
