package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kong"

	"codea1/events"
)

// DeadLetterCommand is `codea1 deadletter`: the events of a run that a stage
// gave up on.
type DeadLetterCommand struct {
	List  DeadLetterList  `cmd:"" help:"List the events that stages gave up on, oldest first."`
	Show  DeadLetterShow  `cmd:"" help:"Show one: why the stage gave up, and the event."`
	Retry DeadLetterRetry `cmd:"" help:"Hand events back to their stages, whose groups have not ended."`
}

// deadLetters is what the three have in common.
type deadLetters struct {
	RunName string   `name:"run" help:"Name of the run." required:"" placeholder:"RUN"`
	JSON    bool     `name:"json" help:"Print JSON, one object per dead letter."`
	Bus     BusFlags `embed:"" group:"Message bus"`
}

// BeforeResolve lets the environment set flags, as it does those of train.
func (d *deadLetters) BeforeResolve(ctx *kong.Context) error { //nolint:unparam // kong wants the error
	ctx.AddResolver(&layers{})
	return nil
}

// Validate checks what no other package does.
func (d *deadLetters) Validate() error {
	if err := events.ValidName(d.RunName); d.RunName != "" && err != nil {
		return fmt.Errorf("--run: %w", err)
	}
	return nil
}

// join connects to the bus of the run. A name that is none must leave nothing
// there.
func (d *deadLetters) join(ctx context.Context, logger *slog.Logger) (events.Broker, error) {
	if d.Bus.URL == busEmbedded {
		return nil, errors.New("--bus: name the server of the run, nats://HOST:PORT or kafka://HOST:PORT; a training with a bus of its own says where that is when it starts")
	}
	bus, err := d.Bus.connect(ctx, "codea1-"+d.RunName+"-deadletter", logger.With("part", "bus"))
	if err != nil {
		return nil, err
	}
	has, err := bus.HasRun(ctx, d.RunName)
	if err == nil && !has {
		err = fmt.Errorf("--run: no run %s has begun at %s", d.RunName, d.Bus.public())
	}
	if err != nil {
		return nil, errors.Join(err, bus.Close())
	}
	return bus, nil
}

// deadLetterJSON is a dead letter as --json prints it.
type deadLetterJSON struct {
	ID       string      `json:"id"`
	Stage    string      `json:"stage"`
	Event    string      `json:"event"`
	Type     events.Type `json:"type"`
	Group    string      `json:"group"`
	Round    int         `json:"round"`
	Attempts int         `json:"attempts"`
	Reason   string      `json:"reason"`
	Time     time.Time   `json:"time"`
}

func newDeadLetterJSON(l *events.DeadLetter) deadLetterJSON {
	return deadLetterJSON{
		ID: l.ID, Stage: l.Name, Event: l.EventID, Type: l.Type, Group: l.Group,
		Round: l.Round, Attempts: l.Attempts, Reason: l.Reason, Time: l.Time.UTC(),
	}
}

// DeadLetterList is `codea1 deadletter list`.
type DeadLetterList struct {
	deadLetters
	Stage string `help:"Only those of one stage." placeholder:"NAME"`
}

// Run lists the dead letters.
func (d *DeadLetterList) Run(ctx context.Context, out io.Writer, logger *slog.Logger) (err error) {
	bus, err := d.join(ctx, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bus.Close()) }()
	list, err := bus.DeadLetters(ctx, d.RunName)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	shown := 0
	for i := range list {
		l := &list[i]
		if d.Stage != "" && l.Name != d.Stage {
			continue
		}
		if d.JSON {
			if err := lines.Encode(newDeadLetterJSON(l)); err != nil {
				return err
			}
			continue
		}
		if shown++; shown == 1 {
			fmt.Fprintln(table, "STAGE\tGROUP\tTYPE\tATTEMPTS\tTIME\tREASON\tDEAD LETTER")
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", l.Name, l.Group, l.Type, l.Attempts, clock(l.Time), summary(l.Reason), l.ID)
	}
	if d.JSON {
		return nil
	}
	if shown == 0 {
		fmt.Fprintln(table, "no dead letters")
	}
	if len(list) == events.MaxDeadLetters {
		fmt.Fprintf(table, "these are the oldest %d; there may be more\n", len(list))
	}
	return table.Flush()
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// summary returns the first line of a reason, cut to what a table has room for.
func summary(reason string) string {
	const most = 72
	first, _, more := strings.Cut(reason, "\n")
	if runes := []rune(first); len(runes) > most {
		first, more = string(runes[:most]), true
	}
	if more {
		first += " ..."
	}
	return first
}

// DeadLetterShow is `codea1 deadletter show`.
type DeadLetterShow struct {
	deadLetters
	ID string `arg:"" name:"letter" help:"The dead letter, as list names it."`
}

// Run shows the dead letter.
func (d *DeadLetterShow) Run(ctx context.Context, out io.Writer, logger *slog.Logger) (err error) {
	bus, err := d.join(ctx, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bus.Close()) }()
	l, m, err := bus.DeadLetter(ctx, d.RunName, d.ID)
	if err != nil {
		return err
	}
	event := describe(&m)
	if d.JSON {
		lines := json.NewEncoder(out)
		lines.SetEscapeHTML(false)
		return lines.Encode(struct {
			deadLetterJSON
			Message eventJSON `json:"message"`
		}{newDeadLetterJSON(&l), event})
	}
	return event.print(out, &l)
}

// eventJSON is the event of a dead letter. Payload is what any reader of
// msgpack sees, with packed values in base64; Data is there instead where the
// bytes are no msgpack.
type eventJSON struct {
	Source    string    `json:"source"`
	Time      time.Time `json:"time"`
	Cause     string    `json:"cause,omitempty"`
	Version   int       `json:"schema_version"`
	Encoding  string    `json:"encoding,omitempty"`
	Bytes     int       `json:"bytes"`
	Malformed string    `json:"malformed,omitempty"` // why this build cannot decode it
	Payload   any       `json:"payload,omitempty"`
	Data      []byte    `json:"data,omitempty"`
}

func describe(m *events.Message) eventJSON {
	e := eventJSON{
		Source: m.Source, Time: m.Time.UTC(), Cause: m.CausationID, Version: m.SchemaVersion, Encoding: m.Encoding, Bytes: len(m.Data),
	}
	if _, err := m.Decode(); err != nil {
		e.Malformed = err.Error()
	}
	payload, err := m.DecodeAny()
	if err != nil {
		e.Data = m.Data
		return e
	}
	e.Payload = withoutNaN(payload)
	return e
}

// maxDump bounds the bytes shown of what cannot be decoded.
const maxDump = 256

func (e *eventJSON) print(out io.Writer, l *events.DeadLetter) error {
	fmt.Fprintf(out, "dead letter  %s\n", l.ID)
	fmt.Fprintf(out, "stage        %s, after %d deliveries in round %d, at %s\n", l.Name, l.Attempts, l.Round, clock(l.Time))
	fmt.Fprintf(out, "event        %s of %s, made by %s at %s\n", l.Type, l.Group, e.Source, clock(e.Time))
	fmt.Fprintf(out, "reason       %s\n", strings.ReplaceAll(strings.TrimSpace(l.Reason), "\n", "\n             "))
	if e.Malformed != "" {
		fmt.Fprintf(out, "malformed    %s\n", e.Malformed)
	}
	fmt.Fprintf(out, "payload      schema version %d, %d bytes%s\n", e.Version, e.Bytes, strings.TrimRight(" "+e.Encoding, " "))
	if e.Payload == nil {
		_, err := io.WriteString(out, hex.Dump(e.Data[:min(len(e.Data), maxDump)]))
		return err
	}
	text := json.NewEncoder(out)
	text.SetEscapeHTML(false)
	text.SetIndent("", "  ")
	return text.Encode(withoutBytes(e.Payload))
}

// withoutNaN returns a payload as JSON can hold it: what is no number is null.
func withoutNaN(v any) any {
	return mapped(v, func(v any) any {
		if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
			return nil
		}
		return v
	})
}

// withoutBytes returns a payload for people to read: of packed token ids and
// log-probs it says how many there are.
func withoutBytes(v any) any {
	return mapped(v, func(v any) any {
		if b, ok := v.([]byte); ok {
			return fmt.Sprintf("(%d values)", len(b)/4)
		}
		return v
	})
}

// mapped returns v with f applied to everything in it that is no map or list.
func mapped(v any, f func(any) any) any {
	switch v := v.(type) {
	case map[string]any:
		fields := make(map[string]any, len(v))
		for name, field := range v {
			fields[name] = mapped(field, f)
		}
		return fields
	case []any:
		items := make([]any, len(v))
		for i, item := range v {
			items[i] = mapped(item, f)
		}
		return items
	}
	return f(v)
}

// DeadLetterRetry is `codea1 deadletter retry`.
type DeadLetterRetry struct {
	deadLetters
	IDs []string `arg:"" name:"letter" help:"The dead letters, as list names them."`
}

// redeliveryJSON is a redelivery as --json prints it.
type redeliveryJSON struct {
	ID    string `json:"id"`
	Stage string `json:"stage"`
	Group string `json:"group"`
	Next  string `json:"next"` // the dead letter there will be should it fail again
}

// Run hands the events back, and ends at the first that cannot be.
func (d *DeadLetterRetry) Run(ctx context.Context, out io.Writer, logger *slog.Logger) (err error) {
	bus, err := d.join(ctx, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bus.Close()) }()
	lines := json.NewEncoder(out)
	for _, id := range d.IDs {
		l, _, err := bus.DeadLetter(ctx, d.RunName, id)
		if err != nil {
			return err
		}
		if err := bus.Redeliver(ctx, d.RunName, id); err != nil {
			return explainRefusal(err, &l)
		}
		next := events.DeadLetterID(l.Name, l.EventID, l.Round+1)
		if d.JSON {
			if err := lines.Encode(redeliveryJSON{l.ID, l.Name, l.Group, next}); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(out, "%s goes to %s again, and its attempts count from 1. Its group has not ended: what waits for it goes on with it.\nShould it fail again, it is dead letter %s.\n",
			l.Group, l.Name, next)
	}
	return nil
}

// explainRefusal says what a retry would have come to, and what can be done.
func explainRefusal(err error, l *events.DeadLetter) error {
	if !errors.Is(err, events.ErrGroupEnded) {
		return err
	}
	return fmt.Errorf("%w. Its step or evaluation goes on without it, and a second end of %s would contradict the log, so nothing was done. "+
		"To keep groups from being dropped until somebody has looked, let the stage hold its dead letters (--hold-dead-letters)", err, l.Group)
}
