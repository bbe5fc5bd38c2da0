package gpuworker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"codea1/events"
	"codea1/events/stage"
	"codea1/gpuworker/checkpoint"
)

// Trainer makes the policy versions of one role: it makes version s by training
// version s-1 on the groups of step s.
//
// It is a projection; its state is the weights. Weights, optimizer state and
// position of a version are one checkpoint directory. After a kill at any moment
// a new Trainer continues from the newest checkpoint, trains no step twice and
// skips none.
type Trainer struct {
	config TrainerConfig
	store  checkpoint.Folder

	collector      *collector
	version        int
	optimizerSteps int
	position       events.Position // after the last message read
}

// NewTrainer returns a Trainer. Run loads the checkpoint and trains.
func NewTrainer(config TrainerConfig) (*Trainer, error) {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("trainer: %w", err)
	}
	return &Trainer{config: config, store: checkpoint.Folder{Path: config.Checkpoints, Run: config.Run, Role: config.Role}}, nil
}

// Run restores the newest checkpoint, publishes its event again, and trains step
// by step. It returns nil after the last step or when ctx ends. The next Run
// trains an interrupted step again from its start. Run does so itself if the
// engine lost its weights; the engine limits how often.
func (t *Trainer) Run(ctx context.Context) error {
	for {
		err := t.run(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if !errors.Is(err, ErrStateLost) {
			return fmt.Errorf("trainer %s: %w", t.config.Role, err)
		}
		t.config.Logger.Warn("restoring the newest checkpoint", "error", err)
	}
}

func (t *Trainer) run(ctx context.Context) (err error) {
	if err := t.restore(ctx); err != nil {
		return err
	}
	if t.version >= t.config.Steps {
		return nil
	}
	reader, err := t.config.Bus.Read(ctx, events.ReadConfig{
		Run: t.config.Run, Types: t.consumes(), From: t.position,
	})
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := reader.Close(); err == nil {
			err = closeErr
		}
	}()
	for t.version < t.config.Steps {
		if err := t.collect(ctx, reader); err != nil {
			return err
		}
		// A message completes only its own step, but later steps can be
		// complete already.
		for t.version < t.config.Steps {
			step, ok := t.collector.next()
			if !ok {
				break
			}
			if err := t.wait(ctx, step.number); err != nil {
				return err
			}
			trained := t.config.Meter.Begin(len(step.groups))
			err := t.train(ctx, step)
			trained(err)
			if err != nil {
				return fmt.Errorf("step %d: %w", step.number, err)
			}
		}
	}
	return nil
}

// wait returns when this trainer may train a step.
func (t *Trainer) wait(ctx context.Context, step int) error {
	if t.config.Turns == nil || !t.config.Second {
		return nil
	}
	return t.config.Turns.Wait(ctx, step)
}

// updated lets the second trainer of Turns train the step of this trainer's version.
func (t *Trainer) updated() {
	if t.config.Turns != nil && !t.config.Second {
		t.config.Turns.Trained(t.version)
	}
}

// consumes returns the types of the events that the trainer reads.
func (t *Trainer) consumes() []events.Type {
	models := events.ModelsBoth
	if t.config.Shared {
		models = events.ModelsShared
	}
	trainer, _ := models.Stage(events.TrainerStage(t.config.Role).Name)
	return trainer.Consumes
}

// restore sets learner, collector and position to the newest checkpoint.
func (t *Trainer) restore(ctx context.Context) error {
	if t.config.Remote != nil {
		if err := t.config.Remote.Restore(ctx, t.store); err != nil {
			return err
		}
	}
	versions, err := t.store.Open()
	if err != nil {
		return err
	}
	t.version, t.optimizerSteps, t.position = 0, 0, events.Start
	dir := t.config.Initial
	var record *checkpoint.Record
	if n := len(versions); n > 0 {
		t.version = versions[n-1]
		dir = t.store.Dir(t.version)
		if record, err = t.store.Read(ctx, t.version); err != nil {
			return err
		}
		t.optimizerSteps, t.position = record.OptimizerSteps, events.Position(record.Position)
	}
	if record != nil {
		// The last process may have ended before it published the event. The bus
		// ignores a repeated event, and refuses files other than the ones that it names
		// before the engine reads them.
		if err := t.publish(ctx, record); err != nil {
			return err
		}
	}
	t.collector = newCollector(t.config.Role, t.config.Hyper.GroupsPerStep, t.version)
	t.collector.shared = t.config.Shared
	t.updated()
	if err := t.config.Learner.Load(ctx, dir); err != nil {
		return engineError("load checkpoint "+dir, err)
	}
	if t.config.Hyper.Update.KLCoef > 0 {
		if err := t.config.Learner.LoadReference(ctx, t.config.Initial); err != nil {
			return engineError("load reference "+t.config.Initial, err)
		}
	}
	t.config.Logger.Info("trainer ready", "version", t.version, "checkpoint", dir)
	return nil
}

// collect reads one message and applies it to the collector.
func (t *Trainer) collect(ctx context.Context, reader events.Reader) error {
	m, after, err := reader.Next(ctx)
	if err != nil {
		return err
	}
	t.config.Meter.Behind(reader)
	before := t.position
	t.position = after
	e, err := m.Admit()
	if err != nil {
		t.config.Logger.Debug("ignored a message that is no event", "id", m.ID, "type", m.Type, "group", m.Group, "error", err)
		return nil
	}
	return t.collector.apply(m.Group, e.Payload, before)
}

// train takes the optimizer steps of one step, saves the version and publishes
// its event. A step without sequences makes a version with the same weights.
func (t *Trainer) train(ctx context.Context, step collectedStep) error {
	started := time.Now()
	hyper := &t.config.Hyper
	lesson := newLesson(t.config.Role, step, hyper.GroupsPerBatch, hyper.MaxStaleness)
	var metrics metricsMean
	if hyper.OldProbs == OldRecomputed {
		var err error
		if metrics.mismatch, err = t.recompute(ctx, lesson); err != nil {
			return err
		}
	}
	for i := range lesson.batches {
		config := hyper.Update
		config.LearningRate, config.Temperature = hyper.Schedule.At(t.optimizerSteps), lesson.temperature
		sequences := lesson.batches[i].all()
		stats, err := t.update(ctx, sequences, config)
		if errors.Is(err, ErrBadRequest) && len(sequences) > 0 { // the engine has changed nothing
			if err := t.leaveOut(ctx, lesson, i, err); err != nil {
				return err
			}
			sequences = lesson.batches[i].all()
			stats, err = t.update(ctx, sequences, config)
		}
		if len(sequences) == 0 {
			continue // no group of it can be trained on
		}
		if err != nil {
			return err
		}
		t.optimizerSteps++
		metrics.add(&stats, config.LearningRate)
	}
	t.config.Meter.Failed(len(lesson.unusable))
	for _, err := range lesson.unusable {
		t.config.Logger.Error("a group is left out: its events cannot be trained on", "error", err)
	}
	t.version = step.number
	t.updated()
	ended := time.Now()
	record := &checkpoint.Record{
		Format: checkpoint.Format, Run: t.config.Run, Role: t.config.Role,
		Version: t.version, Step: step.number, OptimizerSteps: t.optimizerSteps,
		Position: string(t.collector.finish(t.position)),
		Groups:   lesson.groups, Dropped: lesson.dropped,
		Metrics: metrics.record(lesson, t.optimizerSteps, ended.Sub(started)),
		Source:  t.config.Source, Time: ended.UTC(),
	}
	if err := t.store.Write(ctx, record, func(dir string) error {
		return engineError("save", t.config.Learner.Save(ctx, dir))
	}); err != nil {
		return err
	}
	if t.config.Remote != nil { // the replicas look for it when they read the event
		if err := t.config.Remote.Upload(ctx, t.version, t.store.Dir(t.version)); err != nil {
			return err
		}
	}
	if err := t.publish(ctx, record); err != nil {
		return err
	}
	t.config.Logger.Info("policy updated", "version", t.version,
		"groups", len(lesson.groups), "dropped", len(lesson.dropped), "stale", lesson.stale,
		"sequences", lesson.sequences, "tokens", record.Metrics.Tokens,
		"reward", record.Metrics.RewardMean, "loss", record.Metrics.Loss, "seconds", record.Metrics.Seconds)
	// Old versions are deleted last, when policy.updated names a newer one.
	if t.config.Remote != nil {
		t.config.Remote.Retain(ctx, t.config.KeepLast, t.config.KeepEvery)
	}
	return t.store.Retain(t.config.KeepLast, t.config.KeepEvery)
}

// leaveOut drops the groups of a mini-batch that the engine refuses. refusal is the
// error about the whole mini-batch, which is returned if it refuses none.
func (t *Trainer) leaveOut(ctx context.Context, l *lesson, batch int, refusal error) error {
	var rest miniBatch
	for i := range l.batches[batch] {
		g := &l.batches[batch][i]
		_, err := t.config.Learner.LogProbs(ctx, Current, g.sequences, l.temperature)
		switch {
		case errors.Is(err, ErrBadRequest):
			l.leaveOut(g, err)
			refusal = nil
		case err != nil:
			return engineError("log-probs", err)
		default:
			rest = append(rest, *g)
		}
	}
	l.batches[batch] = rest
	return refusal
}

func (t *Trainer) update(ctx context.Context, sequences []Sequence, config UpdateConfig) (UpdateStats, error) {
	learner := t.config.Learner
	if config.KLCoef > 0 {
		reference, err := learner.LogProbs(ctx, Reference, sequences, config.Temperature)
		if err != nil {
			return UpdateStats{}, engineError("reference log-probs", err)
		}
		if len(reference) != len(sequences) {
			return UpdateStats{}, engineError("reference log-probs", fmt.Errorf("%d results for %d sequences", len(reference), len(sequences)))
		}
		for i := range sequences {
			sequences[i].RefProbs = reference[i]
		}
	}
	stats, err := learner.Update(ctx, sequences, config)
	if err != nil {
		return UpdateStats{}, engineError("update", err)
	}
	for _, v := range []float64{stats.Loss, stats.KL, stats.ClipFraction, stats.RatioMean, stats.Entropy, stats.GradNorm} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return UpdateStats{}, fmt.Errorf("%w: optimizer step %d: loss %v, gradient norm %v, KL %v",
				ErrDiverged, t.optimizerSteps+1, stats.Loss, stats.GradNorm, stats.KL)
		}
	}
	return stats, nil
}

// publish publishes the policy.updated of a version. It retries until the bus
// accepts it: the workers need the version for the next step.
func (t *Trainer) publish(ctx context.Context, record *checkpoint.Record) error {
	e, err := record.Event(t.store.Dir(record.Version))
	if err != nil {
		return err
	}
	m, err := events.Encode(e)
	if err != nil {
		return err
	}
	publisher := stage.Publisher{
		Bus: t.config.Bus, Logger: t.config.Logger.With("version", record.Version),
		Backoff: stage.Backoff{Initial: 100 * time.Millisecond, Max: 5 * time.Second},
	}
	err = events.PublishInTurn(ctx, m, false, publisher.Publish, t.config.Bus.Read)
	var foreign *events.ForeignEventError
	if errors.As(err, &foreign) {
		// A version that was trained again has other times and the same weights.
		stored, decodeErr := foreign.Stored.Payload()
		if decodeErr == nil && stored.(*events.PolicyUpdated).Checkpoint.SHA256 == record.WeightsSHA256 {
			if named := stored.(*events.PolicyUpdated).Checkpoint.FilesSHA256; named != "" && named != record.FilesSHA256 {
				return fmt.Errorf("version %d in %s has the weights that policy.updated names, and not the files beside them (files_sha256 %.12s..., want %.12s...): someone changed a file, or wrote another copy to the checkpoint store; delete that copy, and start the trainer again",
					record.Version, t.store.Dir(record.Version), record.FilesSHA256, named)
			}
			return nil
		}
		return fmt.Errorf("version %d has other weights than the ones that the workers use: %w", record.Version, err)
	}
	return err
}
