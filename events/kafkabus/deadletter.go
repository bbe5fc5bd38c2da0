package kafkabus

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"codea1/events"
	"codea1/events/internal/client"
)

// deadLetter is a dead letter in the ledger.
type deadLetter struct {
	roundChange
	name        string
	storedEvent storedEvent
}

func (l *deadLetter) id() string {
	return events.DeadLetterID(l.name, fmt.Sprintf("%x", l.storedEvent.id), l.round)
}

// deadLetters returns the dead letters of all worker sets, oldest first.
func (l *ledger) deadLetters() []deadLetter {
	var list []deadLetter
	for name, s := range l.sets {
		for i, d := range s.dead {
			list = append(list, deadLetter{d, name, l.events[i]})
		}
	}
	slices.SortFunc(list, func(a, b deadLetter) int { return cmp.Compare(a.at, b.at) })
	return list
}

// upToDate returns the control of a run after it has read all that is stored.
func (b *Bus) upToDate(ctx context.Context, run string) (*control, error) {
	if err := client.Ended(ctx, b.ctx); err != nil {
		return nil, err
	}
	ctl, err := b.control(ctx, run)
	if err != nil {
		return nil, err
	}
	end, err := b.end(ctx, ctl.topic)
	if err != nil {
		return nil, err
	}
	return ctl, ctl.wait(ctx, b.ctx, end)
}

// DeadLetters implements events.DeadLetters.
func (b *Bus) DeadLetters(ctx context.Context, run string) (list []events.DeadLetter, err error) {
	defer client.Explain(&err, "kafka: dead letters of run %q", run)
	ctl, err := b.upToDate(ctx, run)
	if err != nil {
		return nil, err
	}
	var found []deadLetter
	ctl.look(func(l *ledger) { found = l.deadLetters() })
	found = found[:min(len(found), events.MaxDeadLetters)]
	list = make([]events.DeadLetter, len(found))
	var ahead []record // read together with the last one
	for i := range found {
		if list[i], ahead, err = ctl.letter(ctx, &found[i], ahead); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// letter reads the change of a dead letter, from records that were read ahead
// if it is among them. It returns the records after it.
func (ctl *control) letter(ctx context.Context, l *deadLetter, ahead []record) (events.DeadLetter, []record, error) {
	for len(ahead) > 0 && ahead[0].offset < l.at {
		ahead = ahead[1:]
	}
	if len(ahead) == 0 {
		if err := ctl.bus.ask(ctx, func() (err error) {
			ahead, err = ctl.bus.fetch(ctx, ctl.topic, 0, l.at, readBytes, followWait)
			return err
		}); err != nil {
			return events.DeadLetter{}, nil, err
		}
	}
	if len(ahead) == 0 || ahead[0].offset != l.at {
		return events.DeadLetter{}, nil, fmt.Errorf("topic %s: no record at offset %d", ctl.topic, l.at)
	}
	n, err := parseChange(ahead[0].value)
	if err != nil {
		return events.DeadLetter{}, nil, fmt.Errorf("topic %s offset %d: %w", ctl.topic, l.at, err)
	}
	found := events.DeadLetter{
		ID: l.id(), Name: l.name, EventID: fmt.Sprintf("%x", l.storedEvent.id), Type: l.storedEvent.typ, Group: n.Group,
		Round: l.round, Reason: n.Reason, Time: n.Time,
	}
	if len(n.Items) == 1 {
		found.Deliveries = n.Items[0].Turn
	}
	return found, ahead[1:], nil
}

// find returns a dead letter by its ID.
func (ctl *control) find(id string) (deadLetter, error) {
	name, eventID, round, err := events.ParseDeadLetterID(id)
	if err != nil {
		return deadLetter{}, err
	}
	var found *deadLetter
	ctl.look(func(l *ledger) {
		s := l.sets[name]
		if s == nil {
			return
		}
		for i, d := range s.dead {
			if d.round == round && fmt.Sprintf("%x", l.events[i].id) == eventID {
				found = &deadLetter{d, name, l.events[i]}
			}
		}
	})
	if found == nil {
		return deadLetter{}, events.ErrNoDeadLetter
	}
	return *found, nil
}

// DeadLetter implements events.DeadLetters.
func (b *Bus) DeadLetter(ctx context.Context, run, id string) (found events.DeadLetter, m events.Message, err error) {
	defer client.Explain(&err, "kafka: dead letter %s of run %q", id, run)
	ctl, err := b.upToDate(ctx, run)
	if err != nil {
		return events.DeadLetter{}, events.Message{}, err
	}
	l, err := ctl.find(id)
	if err != nil {
		return events.DeadLetter{}, events.Message{}, err
	}
	if found, _, err = ctl.letter(ctx, &l, nil); err == nil {
		m, err = ctl.message(ctx, &l)
	}
	return found, m, err
}

// message returns the message of a dead letter.
func (ctl *control) message(ctx context.Context, l *deadLetter) (events.Message, error) {
	rec, err := newPayloadReader(ctl).take(ctx, ctl.bus.ctx, l.storedEvent.location(), maxHeaderBytes)
	if err != nil {
		return events.Message{}, err
	}
	return rec.message(ctl.run, &l.storedEvent)
}

// Redeliver implements events.DeadLetters. It stores a copy of the message in
// the retry topic, and one change that makes the event unfinished.
func (b *Bus) Redeliver(ctx context.Context, run, id string) (err error) {
	defer client.Explain(&err, "kafka: redeliver %s of run %q", id, run)
	ctl, err := b.upToDate(ctx, run)
	if err != nil {
		return err
	}
	l, err := ctl.find(id)
	if err != nil {
		return err
	}
	found, _, err := ctl.letter(ctx, &l, nil)
	if err != nil {
		return err
	}
	for _, end := range events.EndTypes() {
		ctl.look(func(ledger *ledger) {
			if _, has := ledger.byKey[keyOf(end, found.Group)]; has && err == nil {
				err = fmt.Errorf("%w: %s has a %s event", events.ErrGroupEnded, found.Group, end)
			}
		})
	}
	if err != nil {
		return err
	}
	n := change{Kind: kindRedeliver, Set: l.name, Round: l.round, Items: []item{{At: l.storedEvent.at}}}
	m, err := ctl.message(ctx, &l)
	if err != nil {
		return err
	}
	if n.Copy, err = ctl.copy(ctx, retryTopic(run, l.name), &m, copyHeader(headerSet, l.name), copyHeader(headerDeadID, id)); err != nil {
		return err
	}
	after, err := ctl.store(ctx, []change{n})
	if err == nil {
		err = ctl.wait(ctx, b.ctx, after)
	}
	if err != nil {
		return err
	}
	ctl.look(func(ledger *ledger) {
		i, _ := ledger.index(l.storedEvent.at)
		if ledger.sets[l.name].rounds[i].at != after-1 {
			err = fmt.Errorf("%w: it was redelivered", events.ErrNoDeadLetter)
		}
	})
	if err == nil {
		ctl.committer.add(l.name) // there may be no member that commits
	}
	return err
}
