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
	// Retrain makes the versions of a role anew, part after part. It reads the
	// run's events from job.Bus, in order, as a trainer does, publishes a
	// policy.updated event for every version there, and writes nothing outside
	// job.Work. A trainer that goes on may publish its newest version again.
	Retrain(ctx context.Context, job RetrainJob) error
}

// RetrainJob says what is to be trained again.
type RetrainJob struct {
	RunDir string        // for what the log only names: the starting checkpoints
	Run    string        // name of the run on the bus
	Role   events.Role   //
	Parts  []RetrainPart // one behind the other
	Bus    events.Bus    // delivers the log
	Work   string        // an empty folder that is taken away afterwards
}

// RetrainPart is what was trained under one configuration: a run, or what a
// fork shares with its origin, or what came after the fork.
type RetrainPart struct {
	Start events.RunStarted // as the part began
	Last  int               // its last version; the first is 1, or follows the part before
}

// ErrNoRetrainer is returned by a program that was built without an engine.
var ErrNoRetrainer = errors.New("no engine is at hand to train with")

// ErrScheduleChanged is returned for a run that cannot be trained again from
// how it was started alone.
var ErrScheduleChanged = errors.New("the run was resumed with another learning rate schedule")

// TokensError says that a run cannot be trained again: tokens that a model was
// trained on are compacted away.
type TokensError struct {
	Step  int // the first that lacks them
	Group string
	Seq   uint64 // the event that has lost them
}

func (e *TokensError) Error() string {
	return fmt.Sprintf("the tokens of step %d were compacted away: event %d, of group %s, has only its texts; train again from a backup of the log made before",
		e.Step, e.Seq, e.Group)
}

// DivergedError says that training again led to other weights.
type DivergedError struct {
	Role    events.Role
	Version int
	Logged  string // SHA-256 of the weights, hex
	Again   string
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("%s v%d comes out with other weights: the log has %s, training again gives %s", e.Role, e.Version, e.Logged, e.Again)
}

// Retrain trains a role again from the events of the log and compares the
// weights of every version with the logged ones. It returns how many are the
// same, and a *DivergedError for the first that is not. For a log whose tokens
// are compacted it returns a *TokensError, and trains nothing.
func Retrain(ctx context.Context, log eventlog.Reader, trainer Retrainer, role events.Role, runDir, work string, progress func(version int)) (same int, err error) {
	bus := &logBus{log: log, role: role, progress: progress}
	job := RetrainJob{RunDir: runDir, Role: role, Bus: bus, Work: work}
	if err := fillJob(ctx, log, &job, bus); err != nil || len(bus.logged) == 0 {
		return 0, err
	}
	if err := checkTokens(ctx, log, 1, bus.logged[len(bus.logged)-1].Step); err != nil {
		return 0, err
	}
	err = trainer.Retrain(ctx, job)
	if bus.diverged != nil {
		return bus.same, bus.diverged
	}
	if err == nil && bus.same < len(bus.logged) {
		if err = ctx.Err(); err == nil { // a trainer that is interrupted just ends
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

// fillJob adds what the log says: the role's versions, and the starts they were
// trained under. A run that was resumed with another number of steps changed its
// learning rate schedule on the way, and who trained what under which is not
// known; a fork begins anew where the log says, with the schedule of its first
// attempt, which may be another than it was made with.
func fillJob(ctx context.Context, log eventlog.Reader, job *RetrainJob, bus *logBus) error {
	var changed error
	named := false // the last run.started is a fork's own, which trains nothing
	types := []events.Type{events.TypeRunStarted, events.TypePolicyUpdated}
	for r, err := range log.Read(ctx, eventlog.ReadOptions{Types: types}) {
		if err != nil {
			return err
		}
		e, err := r.Decode()
		if err != nil {
			return err
		}
		part := len(job.Parts) - 1
		switch p := e.Payload.(type) {
		case *events.RunStarted:
			job.Run = e.Run
			switch {
			case part < 0 || p.Origin != nil && job.Parts[part].Last > 0:
				job.Parts = append(job.Parts, RetrainPart{Start: *p})
			case p.Origin != nil, named: // nothing was trained before the fork, or since
				job.Parts[part].Start = *p
			case changed == nil && p.Steps != job.Parts[part].Start.Steps:
				changed = fmt.Errorf("event %d: %w: %d steps planned, then %d", r.Seq, ErrScheduleChanged, job.Parts[part].Start.Steps, p.Steps)
			}
			named = p.Origin != nil
		case *events.PolicyUpdated:
			if p.Role != job.Role {
				continue
			}
			if part < 0 {
				return fmt.Errorf("event %d: %s before it: %w", r.Seq, events.TypeRunStarted, eventlog.ErrNotFound)
			}
			job.Parts[part].Last = p.Version
			bus.logged = append(bus.logged, p)
		}
	}
	if len(bus.logged) == 0 {
		return nil
	}
	if last := len(job.Parts) - 1; job.Parts[last].Last == 0 { // nothing was trained after the fork
		job.Parts = job.Parts[:last]
	}
	return changed
}

// logBus is a bus that delivers a log, to one trainer, and compares what the
// trainer publishes with what the log has.
type logBus struct {
	log      eventlog.Reader
	role     events.Role
	logged   []*events.PolicyUpdated // versions of the role, in order
	progress func(version int)
	same     int
	diverged *DivergedError
}

// Publish takes the role's next version. One with other weights than the
// logged ones ends the training: it returns events.ErrLineage, as a bus does
// for another payload under an ID.
func (b *logBus) Publish(_ context.Context, messages ...events.Message) error {
	for i := range messages {
		e, err := messages[i].Decode()
		if err != nil {
			return err
		}
		u, ok := e.Payload.(*events.PolicyUpdated)
		if ok && b.same > 0 && same(u, b.logged[b.same-1]) {
			continue // by a trainer that goes on
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
			b.progress(u.Version)
		}
	}
	return nil
}

// same reports whether two versions of a role are one, with the same weights.
func same(a, b *events.PolicyUpdated) bool {
	return a.Role == b.Role && a.Version == b.Version && a.Checkpoint.SHA256 == b.Checkpoint.SHA256
}

// Read reads the log; positions are sequence numbers.
func (b *logBus) Read(ctx context.Context, config events.ReadConfig) (events.Reader, error) {
	from := uint64(0)
	if config.From != events.Start {
		var err error
		if from, err = strconv.ParseUint(string(config.From), 10, 64); err != nil {
			return nil, fmt.Errorf("position %q: %w", config.From, errPosition)
		}
	}
	next, stop := iter.Pull2(b.log.Read(ctx, eventlog.ReadOptions{From: from + 1, Types: config.Types}))
	return &logReader{next, stop}, nil
}

// Consume is not what a log can do: it hands out nothing to competitors.
func (*logBus) Consume(context.Context, events.ConsumeConfig) (events.Consumer, error) {
	return nil, fmt.Errorf("consume from a log: %w", errors.ErrUnsupported)
}

// Lag is not known of a log.
func (*logBus) Lag(context.Context, string, string) (events.Lag, error) {
	return events.Lag{}, fmt.Errorf("lag of a log: %w", errors.ErrUnsupported)
}

// Close implements events.Bus; the log is its owner's.
func (*logBus) Close() error { return nil }

type logReader struct {
	next func() (eventlog.Record, error, bool)
	stop func()
}

// errLogEnds is what a trainer meets that wants more than the log has.
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

// errPosition is returned for a position that is not a sequence number.
var errPosition = errors.New("not a position in a log")
