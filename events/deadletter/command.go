package deadletter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"codea1/events"
	"codea1/events/commandline"
	"codea1/events/connect"
	"codea1/events/rundir"
)

// Command is `codea1 deadletter`.
type Command struct {
	List  List  `cmd:"" help:"List the dead letters of a run, oldest first."`
	Show  Show  `cmd:"" help:"Show one dead letter: the reason and the event."`
	Retry Retry `cmd:"" help:"Redeliver events to their stages, if their groups have not ended."`
}

// flags are the flags of every subcommand.
type flags struct {
	RunName string        `name:"run" help:"Name of the run." required:"" placeholder:"RUN"`
	RunsDir string        `help:"Directory of the run directories. The run with an embedded server is read there." default:"runs" placeholder:"DIR"`
	JSON    bool          `name:"json" help:"Print JSON, one object per dead letter."`
	Bus     connect.Flags `embed:"" group:"Message bus"`
}

// Validate checks the name of the run.
func (f *flags) Validate() error {
	if err := events.ValidName(f.RunName); f.RunName != "" && err != nil {
		return fmt.Errorf("--run: %w", err)
	}
	return nil
}

// open connects to the bus of the run, or opens that of its directory. It refuses an unknown run, so that a
// mistyped name does not create one.
func (f *flags) open(ctx context.Context, logger *slog.Logger) (events.Broker, error) {
	if f.Bus.URL == connect.Embedded {
		dir, err := rundir.Find(f.RunsDir, f.RunName)
		if err != nil {
			return nil, fmt.Errorf("%w; --bus names the bus of a run on another machine", err)
		}
		return connect.OpenRun(ctx, dir, "codea1-"+f.RunName+"-deadletter", logger.With("part", "bus"))
	}
	if err := f.Bus.CheckReachable(ctx); err != nil {
		return nil, err
	}
	bus, err := f.Bus.Open(ctx, "codea1-"+f.RunName+"-deadletter", logger.With("part", "bus"))
	if err != nil {
		return nil, err
	}
	has, err := bus.HasRun(ctx, f.RunName)
	if err == nil && !has {
		err = commandline.Wrong(fmt.Errorf("--run: there is no run %s at %s", f.RunName, connect.PublicURL(f.Bus.URL)))
	}
	if err != nil {
		return nil, errors.Join(err, bus.Close())
	}
	return bus, nil
}

// letterJSON is the JSON form of a dead letter.
type letterJSON struct {
	ID         string      `json:"id,omitempty"` // the log has no ID, round and deliveries
	Stage      string      `json:"stage"`
	Event      string      `json:"event"`
	Type       events.Type `json:"type"`
	Group      string      `json:"group"`
	Round      int         `json:"round,omitempty"`
	Deliveries int         `json:"deliveries,omitempty"`
	Reason     string      `json:"reason"`
	Time       time.Time   `json:"time"`
}

func newLetterJSON(l *events.DeadLetter) letterJSON {
	return letterJSON{
		ID: l.ID, Stage: l.Name, Event: l.EventID, Type: l.Type, Group: l.Group,
		Round: l.Round, Deliveries: l.Deliveries, Reason: l.Reason, Time: l.Time.UTC(),
	}
}

// List is `codea1 deadletter list`.
type List struct {
	flags
	Stage   string `help:"List only the dead letters of this stage." placeholder:"NAME"`
	FromLog bool   `help:"Read the log of the run in place of its bus: the events for which a group was dropped. Without --bus, the log is read if the run directory has no bus."`

	// Log returns the dead letters that the log of a run knows; without numbers and IDs.
	Log func(ctx context.Context, runsDir, run string, logger *slog.Logger) ([]events.DeadLetter, error) `kong:"-"`
}

// letters returns the dead letters of the bus or of the log.
func (d *List) letters(ctx context.Context, logger *slog.Logger) (list []events.DeadLetter, err error) {
	fromLog := d.FromLog
	if !fromLog && d.Bus.URL == connect.Embedded {
		if dir, err := rundir.Find(d.RunsDir, d.RunName); err == nil {
			_, err = os.Stat(rundir.NATS(dir))
			fromLog = errors.Is(err, fs.ErrNotExist)
		}
	}
	if fromLog {
		return d.Log(ctx, d.RunsDir, d.RunName, logger)
	}
	bus, err := d.open(ctx, logger)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bus.Close()) }()
	return bus.DeadLetters(ctx, d.RunName)
}

// Run lists the dead letters.
func (d *List) Run(ctx context.Context, out io.Writer, logger *slog.Logger) error {
	if d.Stage != "" && !slices.ContainsFunc(events.Stages, func(s events.Stage) bool { return s.Name == d.Stage }) {
		return commandline.Wrong(fmt.Errorf("--stage %q is no stage; `codea1 stage --help` lists them", d.Stage))
	}
	list, err := d.letters(ctx, logger)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	lines := newEncoder(out)
	shown := 0
	for i := range list {
		l := &list[i]
		if d.Stage != "" && l.Name != d.Stage {
			continue
		}
		if d.JSON {
			if err := lines.Encode(newLetterJSON(l)); err != nil {
				return err
			}
			continue
		}
		if shown++; shown == 1 {
			fmt.Fprintln(table, "STAGE\tGROUP\tTYPE\tDELIVERIES\tTIME\tREASON\tDEAD LETTER")
		}
		deliveries, id := strconv.Itoa(l.Deliveries), l.ID
		if id == "" { // from the log
			deliveries, id = "-", "-"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.Name, l.Group, l.Type, deliveries, clock(l.Time), summary(l.Reason), id)
	}
	if d.JSON {
		return nil
	}
	if shown == 0 {
		fmt.Fprintln(table, "no dead letters")
	}
	if len(list) == events.MaxDeadLetters {
		fmt.Fprintf(table, "only the oldest %d are listed\n", len(list))
	}
	return table.Flush()
}

func newEncoder(out io.Writer) *json.Encoder {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return e
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// summary returns the first line of a reason, cut to the width of a table column.
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

// Retry is `codea1 deadletter retry`.
type Retry struct {
	flags
	IDs []string `arg:"" name:"letter" help:"IDs of the dead letters, as list prints them."`
}

// redeliveryJSON is the JSON form of a redelivery.
type redeliveryJSON struct {
	ID    string `json:"id"`
	Stage string `json:"stage"`
	Group string `json:"group"`
	Next  string `json:"next"` // ID of the dead letter that another failure makes
}

// Run redelivers the events. It ends at the first that cannot be redelivered.
func (d *Retry) Run(ctx context.Context, out io.Writer, logger *slog.Logger) (err error) {
	bus, err := d.open(ctx, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bus.Close()) }()
	lines := newEncoder(out)
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
		fmt.Fprintf(out, "redelivered %s to stage %s, where its deliveries count from 1; its group has not ended\nanother failure makes dead letter %s\n",
			l.Group, l.Name, next)
	}
	return nil
}

// explainRefusal adds the reason of a refused retry and a remedy.
func explainRefusal(err error, l *events.DeadLetter) error {
	if !errors.Is(err, events.ErrGroupEnded) {
		return err
	}
	return fmt.Errorf("%w; nothing was redelivered, because the log keeps one end of group %s; "+
		"to have time for a retry, start the run with --hold-dead-letters", err, l.Group)
}
