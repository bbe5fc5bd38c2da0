package kafkabus

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"codea1/events"
	"codea1/events/internal/client"
)

// buried is a dead letter as the ledger knows it.
type buried struct {
	letter
	name  string
	entry entry
}

func (l *buried) id() string {
	return events.DeadLetterID(l.name, fmt.Sprintf("%x", l.entry.id), l.round)
}

// buried returns the dead letters of all sets, oldest first.
func (l *ledger) buried() []buried {
	var list []buried
	for name, s := range l.sets {
		for i, d := range s.dead {
			list = append(list, buried{d, name, l.events[i]})
		}
	}
	slices.SortFunc(list, func(a, b buried) int { return cmp.Compare(a.at, b.at) })
	return list
}

// upToDate returns the journal of a run with everything stored so far.
func (b *Bus) upToDate(ctx context.Context, run string) (*journal, error) {
	if err := client.Ended(ctx, b.ctx); err != nil {
		return nil, err
	}
	j, err := b.journal(ctx, run)
	if err != nil {
		return nil, err
	}
	end, err := b.end(ctx, j.topic)
	if err != nil {
		return nil, err
	}
	return j, j.wait(ctx, b.ctx, end)
}

// DeadLetters implements events.DeadLetters.
func (b *Bus) DeadLetters(ctx context.Context, run string) ([]events.DeadLetter, error) {
	list, err := b.deadLetters(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("kafka: dead letters of run %q: %w", run, err)
	}
	return list, nil
}

func (b *Bus) deadLetters(ctx context.Context, run string) ([]events.DeadLetter, error) {
	j, err := b.upToDate(ctx, run)
	if err != nil {
		return nil, err
	}
	var found []buried
	j.look(func(l *ledger) { found = l.buried() })
	found = found[:min(len(found), events.MaxDeadLetters)]
	list := make([]events.DeadLetter, len(found))
	var ahead []record // that came with the last one
	for i := range found {
		if list[i], ahead, err = j.letter(ctx, &found[i], ahead); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// letter reads the note of a dead letter; it looks for it in records read
// ahead first, and returns what came after it.
func (j *journal) letter(ctx context.Context, l *buried, ahead []record) (events.DeadLetter, []record, error) {
	for len(ahead) > 0 && ahead[0].offset < l.at {
		ahead = ahead[1:]
	}
	if len(ahead) == 0 {
		var err error
		if ahead, err = j.bus.fetch(ctx, j.topic, 0, l.at, readBytes, followWait); err != nil {
			return events.DeadLetter{}, nil, err
		}
	}
	if len(ahead) == 0 || ahead[0].offset != l.at {
		return events.DeadLetter{}, nil, fmt.Errorf("topic %s: no record at offset %d", j.topic, l.at)
	}
	n, err := parseNote(ahead[0].value)
	if err != nil {
		return events.DeadLetter{}, nil, fmt.Errorf("topic %s offset %d: %w", j.topic, l.at, err)
	}
	found := events.DeadLetter{
		ID: l.id(), Name: l.name, EventID: fmt.Sprintf("%x", l.entry.id), Type: l.entry.typ, Group: n.Group,
		Round: l.round, Reason: n.Reason, Time: n.Time,
	}
	if len(n.Items) == 1 {
		found.Deliveries = n.Items[0].Turn
	}
	return found, ahead[1:], nil
}

// find returns a dead letter by its ID.
func (j *journal) find(id string) (buried, error) {
	name, eventID, round, err := events.ParseDeadLetterID(id)
	if err != nil {
		return buried{}, err
	}
	var found *buried
	j.look(func(l *ledger) {
		s := l.sets[name]
		if s == nil {
			return
		}
		for i, d := range s.dead {
			if d.round == round && fmt.Sprintf("%x", l.events[i].id) == eventID {
				found = &buried{d, name, l.events[i]}
			}
		}
	})
	if found == nil {
		return buried{}, events.ErrNoDeadLetter
	}
	return *found, nil
}

// DeadLetter implements events.DeadLetters.
func (b *Bus) DeadLetter(ctx context.Context, run, id string) (events.DeadLetter, events.Message, error) {
	found, m, err := b.deadLetter(ctx, run, id)
	if err != nil {
		return events.DeadLetter{}, events.Message{}, fmt.Errorf("kafka: dead letter %s of run %q: %w", id, run, err)
	}
	return found, m, nil
}

func (b *Bus) deadLetter(ctx context.Context, run, id string) (events.DeadLetter, events.Message, error) {
	j, err := b.upToDate(ctx, run)
	if err != nil {
		return events.DeadLetter{}, events.Message{}, err
	}
	l, err := j.find(id)
	if err != nil {
		return events.DeadLetter{}, events.Message{}, err
	}
	found, _, err := j.letter(ctx, &l, nil)
	if err != nil {
		return events.DeadLetter{}, events.Message{}, err
	}
	m, err := j.message(ctx, &l)
	return found, m, err
}

// message returns the message of a dead letter.
func (j *journal) message(ctx context.Context, l *buried) (events.Message, error) {
	rec, err := newShelf(j).take(ctx, j.bus.ctx, l.entry.spot(), maxHeaderBytes)
	if err != nil {
		return events.Message{}, err
	}
	return rec.message(j.run, &l.entry)
}

// Redeliver implements events.DeadLetters: a copy of the message in the set's
// retry topic, and one note that makes it unfinished again.
func (b *Bus) Redeliver(ctx context.Context, run, id string) error {
	if err := b.redeliver(ctx, run, id); err != nil {
		return fmt.Errorf("kafka: redeliver %s of run %q: %w", id, run, err)
	}
	return nil
}

func (b *Bus) redeliver(ctx context.Context, run, id string) error {
	j, err := b.upToDate(ctx, run)
	if err != nil {
		return err
	}
	l, err := j.find(id)
	if err != nil {
		return err
	}
	found, _, err := j.letter(ctx, &l, nil)
	if err != nil {
		return err
	}
	for _, end := range events.EndTypes() {
		j.look(func(ledger *ledger) {
			if _, has := ledger.byKey[keyOf(end, found.Group)]; has && err == nil {
				err = fmt.Errorf("%w: %s has its %s", events.ErrGroupEnded, found.Group, end)
			}
		})
	}
	if err != nil {
		return err
	}
	n := note{Verb: verbAgain, Set: l.name, Round: l.round, Items: []item{{At: l.entry.at}}}
	m, err := j.message(ctx, &l)
	if err != nil {
		return err
	}
	if n.Copy, err = j.copy(ctx, retryTopic(run, l.name), &m, copyHeader(headerSet, l.name), copyHeader(headerDeadID, id)); err != nil {
		return err
	}
	after, err := j.store(ctx, []note{n})
	if err == nil {
		err = j.wait(ctx, b.ctx, after)
	}
	if err != nil {
		return err
	}
	j.look(func(ledger *ledger) {
		i, _ := ledger.index(l.entry.at)
		if ledger.sets[l.name].rounds[i].at != after-1 {
			err = fmt.Errorf("%w: it was redelivered", events.ErrNoDeadLetter)
		}
	})
	if err == nil {
		j.marks.add(l.name) // there may be no member that would say so
	}
	return err
}
