package fork

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"codea1/events"
	"codea1/replay/eventlog"
)

// Retrainer repeats the training of one role.
type Retrainer interface {
	// Retrain trains the versions of a role again, part after part. It reads the
	// run's events from job.Bus in order, as a trainer does, and publishes a
	// policy.updated event for every version. It writes only to job.Work. A trainer
	// may publish its newest version again when it starts a part.
	Retrain(ctx context.Context, job RetrainJob) error
}

// RetrainJob describes the versions to be trained again.
type RetrainJob struct {
	RunDir string // has version 0, which the log only names
	Run    string // name of the run on the bus
	Role   events.Role
	Parts  []RetrainPart // in the order of the log
	Bus    eventlog.Bus  // delivers the log
	Work   string        // an empty directory that the caller removes
}

// RetrainPart describes the versions of one configuration. A run without a fork
// has one part; a fork ends a part and begins another.
type RetrainPart struct {
	Start events.RunStarted // first event of the part
	Last  int               // last version; the first is 1, or follows the part before
}

// ErrNoRetrainer is returned by a program without an engine.
var ErrNoRetrainer = errors.New("no engine configured: training again is unavailable")

// ErrScheduleChanged is returned for a run that was resumed with another learning
// rate schedule: the log does not tell which versions used it.
var ErrScheduleChanged = errors.New("the run was resumed with another learning rate schedule")

// TokensError is returned for a run that cannot be trained again, because
// compaction has removed tokens that a model was trained on.
type TokensError struct {
	Step  int // first step without tokens
	Group string
	Seq   uint64 // event without tokens
}

func (e *TokensError) Error() string {
	return fmt.Sprintf("compaction removed the tokens of step %d: event %d of group %s has only its texts; use a backup of the log from before the compaction",
		e.Step, e.Seq, e.Group)
}

// DivergedError is returned if training again gives other weights.
type DivergedError struct {
	Role    events.Role
	Version int
	Logged  string // SHA-256 of the weights, hex
	Again   string
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("%s v%d: training again gives other weights: %s, and the log has %s", e.Role, e.Version, e.Again, e.Logged)
}

// Retrain trains a role again from the events of the log and compares the weights
// of every version with the logged ones. It returns the number of equal versions,
// and a *DivergedError for the first other version. If compaction has removed the
// tokens, it returns a *TokensError and trains nothing. It calls progress, which may
// be nil, with the number of equal versions so far and that of all.
func Retrain(ctx context.Context, log eventlog.Reader, trainer Retrainer, role events.Role, runDir, work string, progress func(done, versions int)) (same int, err error) {
	bus := &logBus{log: log, role: role, progress: progress}
	job := RetrainJob{RunDir: runDir, Role: role, Bus: bus, Work: work}
	if err := fillJob(ctx, log, &job, bus); err != nil || len(bus.logged) == 0 {
		return 0, err
	}
	if err := checkTokens(ctx, log, 1, bus.logged[len(bus.logged)-1].Step); err != nil {
		return 0, err
	}
	if progress != nil {
		progress(0, len(bus.logged))
	}
	err = trainer.Retrain(ctx, job)
	if bus.diverged != nil {
		return bus.same, bus.diverged
	}
	if err == nil && bus.same < len(bus.logged) {
		if err = ctx.Err(); err == nil { // an interrupted trainer returns no error
			err = fmt.Errorf("trained %d of %d versions", bus.same, len(bus.logged))
		}
	}
	if err != nil {
		return bus.same, fmt.Errorf("train %s again: %w", role, err)
	}
	return bus.same, nil
}

// checkTokens returns a *TokensError if a group of the steps from first to last
// is compacted.
func checkTokens(ctx context.Context, log eventlog.Reader, first, last int) error {
	to, payloads := log.Compacted()
	if payloads == 0 {
		return nil
	}
	for r, err := range log.Read(ctx, eventlog.ReadOptions{To: to, Types: eventlog.TokenTypes}) {
		if err != nil {
			return err
		}
		if step, ok := eventlog.StepOf(&r.Message); ok && r.Compacted && step >= first && step <= last {
			return &TokensError{step, r.Message.Group, r.Seq}
		}
	}
	return nil
}

// fillJob reads the role's versions and parts from the log. A run that was resumed
// with another number of steps has changed its learning rate schedule, and the log
// does not tell which versions used which schedule. A fork begins a part with the
// schedule of its first attempt, which may differ from its own run.started event.
func fillJob(ctx context.Context, log eventlog.Reader, job *RetrainJob, bus *logBus) error {
	var changed error
	afterFork := false // the last run.started event is the one that Copy made
	types := []events.Type{events.TypeRunStarted, events.TypePolicyUpdated}
	err := eventlog.Decoded(ctx, log, types, func(r *eventlog.Record, e *events.Event) error {
		part := len(job.Parts) - 1
		switch p := e.Payload.(type) {
		case *events.RunStarted:
			job.Run = e.Run
			switch {
			case part < 0 || p.Origin != nil && job.Parts[part].Last > 0:
				job.Parts = append(job.Parts, RetrainPart{Start: *p})
			case p.Origin != nil, afterFork: // the part has no version yet
				job.Parts[part].Start = *p
			case changed == nil && p.Steps != job.Parts[part].Start.Steps:
				changed = fmt.Errorf("event %d: %w: %d steps planned, then %d", r.Seq, ErrScheduleChanged, job.Parts[part].Start.Steps, p.Steps)
			}
			afterFork = p.Origin != nil
		case *events.PolicyUpdated:
			if p.Role != job.Role {
				return nil
			}
			if part < 0 {
				return fmt.Errorf("event %d: no %s event before it: %w", r.Seq, events.TypeRunStarted, eventlog.ErrNotFound)
			}
			job.Parts[part].Last = p.Version
			bus.logged = append(bus.logged, p)
		}
		return nil
	})
	if err != nil || len(bus.logged) == 0 {
		return err
	}
	if last := len(job.Parts) - 1; job.Parts[last].Last == 0 { // no version after the fork
		job.Parts = job.Parts[:last]
	}
	return changed
}

// logBus delivers a log to one trainer, and compares the versions that the trainer
// publishes with the logged ones.
type logBus struct {
	log      eventlog.Reader
	role     events.Role
	logged   []*events.PolicyUpdated // versions of the role, in order
	progress func(done, versions int)
	same     int
	diverged *DivergedError
}

// Publish compares the role's next version with the logged one. For other weights
// it returns events.ErrLineage, which ends the training.
func (b *logBus) Publish(_ context.Context, messages ...events.Message) error {
	for i := range messages {
		e, err := messages[i].Decode()
		if err != nil {
			return err
		}
		u, ok := e.Payload.(*events.PolicyUpdated)
		if ok && b.same > 0 && same(u, b.logged[b.same-1]) {
			continue // a trainer that starts a part
		}
		if !ok || u.Role != b.role || b.same >= len(b.logged) {
			return fmt.Errorf("%s of %s: %w", e.Type, e.Group, events.ErrLineage)
		}
		want := b.logged[b.same]
		if !same(u, want) {
			b.diverged = &DivergedError{b.role, u.Version, want.Checkpoint.SHA256, u.Checkpoint.SHA256}
			return fmt.Errorf("%w: %w", events.ErrLineage, b.diverged)
		}
		b.same++
		if b.progress != nil {
			b.progress(b.same, len(b.logged))
		}
	}
	return nil
}

// same reports whether two updates have the same role, version and weights.
func same(a, b *events.PolicyUpdated) bool {
	return a.Role == b.Role && a.Version == b.Version && a.Checkpoint.SHA256 == b.Checkpoint.SHA256
}

// Read reads the log. Positions are sequence numbers.
func (b *logBus) Read(ctx context.Context, config events.ReadConfig) (events.Reader, error) {
	from := uint64(0)
	if config.From != events.Start {
		var err error
		if from, err = strconv.ParseUint(string(config.From), 10, 64); err != nil {
			return nil, fmt.Errorf("position %q is not a sequence number of the log: %w", config.From, err)
		}
	}
	next, stop := iter.Pull2(b.log.Read(ctx, eventlog.ReadOptions{From: from + 1, Types: config.Types}))
	return &logReader{next, stop}, nil
}

type logReader struct {
	next func() (eventlog.Record, error, bool)
	stop func()
}

// errLogEnds is returned to a trainer that reads past the end of the log.
var errLogEnds = errors.New("the log ends")

func (r *logReader) Next(ctx context.Context) (events.Message, events.Position, error) {
	if err := ctx.Err(); err != nil {
		return events.Message{}, "", err
	}
	record, err, ok := r.next()
	if !ok {
		return events.Message{}, "", errLogEnds
	}
	if err != nil {
		return events.Message{}, "", err
	}
	return record.Message, events.Position(strconv.FormatUint(record.Seq, 10)), nil
}

func (r *logReader) Close() error {
	r.stop()
	return nil
}
