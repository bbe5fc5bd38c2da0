package eventlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"codea1/events"
	"codea1/events/rundir"
	"codea1/replay/mistakes"
	"codea1/replay/state"
)

// Reader reads a log. It is the interface of the packages that query a log.
type Reader interface {
	// Read yields the selected events in order.
	Read(ctx context.Context, options ReadOptions) iter.Seq2[Record, error]
	// Get returns the event with an ID, or ErrNotFound.
	Get(ctx context.Context, id string) (Record, error)
	// Last returns sequence number and chain hash of the last event.
	Last() (seq uint64, chain Hash)
	// Compacted returns the last event that compaction has passed, and the number
	// of compacted payloads.
	Compacted() (to, payloads uint64)
	// BookAt returns the Mistake Book as it was after event seq.
	BookAt(ctx context.Context, seq uint64) (*mistakes.Book, error)
}

var _ Reader = (*Log)(nil)

// RunName returns the name of a log's run.
func RunName(ctx context.Context, log Reader) (string, error) {
	for r, err := range log.Read(ctx, ReadOptions{}) {
		return r.Message.Run, err
	}
	return "", fmt.Errorf("the log is empty: %w", ErrNotFound)
}

// Decoded calls visit for every event of the types with its decoded form, in
// order. It leaves out an event that IsUnreadable.
func Decoded(ctx context.Context, log Reader, types []events.Type, visit func(*Record, *events.Event) error) error {
	for r, err := range log.Read(ctx, ReadOptions{Types: types}) {
		if err != nil {
			return err
		}
		e, err := r.Decode()
		if IsUnreadable(err) {
			continue
		}
		if err != nil {
			return err
		}
		if err := visit(&r, e); err != nil {
			return err
		}
	}
	return nil
}

// Updates returns the policy versions of a run, in the order of the log.
func Updates(ctx context.Context, log Reader) ([]*events.PolicyUpdated, error) {
	var updates []*events.PolicyUpdated
	err := Decoded(ctx, log, []events.Type{events.TypePolicyUpdated}, func(_ *Record, e *events.Event) error {
		updates = append(updates, e.Payload.(*events.PolicyUpdated))
		return nil
	})
	return updates, err
}

// Models returns the models of a run, which its run.started events name.
func Models(ctx context.Context, log Reader) (models events.Models, err error) {
	err = Decoded(ctx, log, []events.Type{events.TypeRunStarted}, func(_ *Record, e *events.Event) error {
		models = e.Payload.(*events.RunStarted).Models
		return nil
	})
	return models, err
}

// Trained returns the last step that every model of a run was trained on.
func Trained(ctx context.Context, log Reader) (int, error) {
	models, err := Models(ctx, log)
	if err != nil {
		return 0, err
	}
	updates, err := Updates(ctx, log)
	trained := make(map[events.Role]int)
	for _, u := range updates {
		trained[u.Role] = max(trained[u.Role], u.Step)
	}
	return models.Trained(trained), err
}

// StepOf returns the training step of an event: from the name of its group, or
// from the version of a policy.updated event.
func StepOf(m *events.Message) (int, bool) {
	if m.Type != events.TypePolicyUpdated {
		return state.TrainingStep(m.Group)
	}
	_, digits, _ := strings.Cut(m.Group, "-v")
	step, err := strconv.Atoi(digits)
	return step, err == nil
}

// RootID returns the ID of an event without a cause.
func RootID(run, group string, t events.Type) string {
	return events.New(run, group, "replay", time.Time{}, events.NewPayload(t)).ID
}

// VisitRun is Decoded for the log in a run directory. It reports whether there is one.
func VisitRun(ctx context.Context, dir string, types []events.Type, visit func(*Record, *events.Event) error) (found bool, err error) {
	log, err := Open(rundir.Log(dir), Options{ReadOnly: true})
	if errors.Is(err, ErrNoLog) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = Decoded(ctx, log, types, visit)
	return true, errors.Join(err, log.Close())
}

// LastStarted returns the newest run.started in the log of a run directory; nil for
// none.
func LastStarted(ctx context.Context, dir string) (started *events.RunStarted, run string, err error) {
	log, err := Open(rundir.Log(dir), Options{ReadOnly: true})
	if errors.Is(err, ErrNoLog) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	for record, err := range log.Read(ctx, ReadOptions{Types: []events.Type{events.TypeRunStarted}}) {
		if err != nil {
			return nil, "", errors.Join(err, log.Close())
		}
		// An event that cannot be decoded says nothing about the run.
		if e, err := record.Decode(); err == nil {
			started, run = e.Payload.(*events.RunStarted), e.Run
		}
	}
	return started, run, log.Close()
}
