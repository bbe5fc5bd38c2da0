package tap

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"codea1/events"
	"codea1/events/commandline"
	"codea1/events/connect"
)

// Command is `codea1 tap`.
type Command struct {
	// Host knows the configuration of a run.
	Host Host `kong:"-"`

	RunName string        `arg:"" name:"run" help:"Directory of a run, or name of a run in --runs-dir or on --bus."`
	RunsDir string        `help:"Directory of the run directories." default:"runs" placeholder:"DIR"`
	From    string        `help:"Where to begin: now, start, a time (RFC 3339), or the position after which to read, as --json prints it. Default: now for a run in progress, start for another." placeholder:"POSITION"`
	Type    []events.Type `help:"Only events of these types." placeholder:"TYPE"`
	Role    []events.Role `help:"Only events of these models: code or test." placeholder:"ROLE"`
	Group   []string      `help:"Only events of these groups." placeholder:"GROUP"`
	Where   string        `help:"Only events for which this expression is true, for example 'reward > 0.5 && role == \"code\"'. Names: ${tap_names}; payload has the fields of the schemas." placeholder:"EXPRESSION"`
	Limit   int           `help:"End after this many events; 0 is no limit." default:"0" min:"0"`
	Text    bool          `help:"Also print the questions, answers and suites in the events."`
	JSON    bool          `name:"json" help:"Print one JSON object per line."`
	Bus     connect.Flags `embed:"" group:"Message bus"`
}

// Vars are the variables in the help of Command.
var Vars = kong.Vars{"tap_names": names()}

// settleTime is how long a tap waits for another event after the last one of a run.
const settleTime = 2 * time.Second

// flushBytes bounds the output that waits while events come one after the other.
const flushBytes = 64 << 10

// Run prints events until the run ends, the limit is reached or ctx ends. In the last
// case it returns ctx.Err().
func (c *Command) Run(ctx context.Context, out io.Writer, logger *slog.Logger) error {
	filter, err := c.filter()
	if err != nil {
		return err
	}
	buffer := bufio.NewWriterSize(out, flushBytes)
	lines := &lines{json: c.JSON, text: c.Text}
	printed := 0
	err = c.read(ctx, filter, logger, func(e *events.Event, position events.Position) (bool, error) {
		if !filter.matches(e) {
			return true, nil
		}
		_, err := buffer.Write(lines.line(e, position))
		printed++
		return c.Limit == 0 || printed < c.Limit, err
	}, buffer.Flush)
	if last := buffer.Flush(); !errors.Is(err, last) {
		err = errors.Join(err, last)
	}
	return err
}

// Events calls handle with the events that Run would print, and idle when none follows
// at once. It ends as Run does, and with the error of handle.
func (c *Command) Events(ctx context.Context, logger *slog.Logger, handle func(*events.Event) error, idle func()) error {
	filter, err := c.filter()
	if err != nil {
		return err
	}
	return c.read(ctx, filter, logger, func(e *events.Event, _ events.Position) (bool, error) {
		if !filter.matches(e) {
			return true, nil
		}
		return true, handle(e)
	}, func() error { idle(); return nil })
}

// handler handles an event and reports whether it wants more.
type handler func(*events.Event, events.Position) (more bool, err error)

// read calls handle with the events of the run's source.
func (c *Command) read(ctx context.Context, filter *filter, logger *slog.Logger, handle handler, idle func() error) (err error) {
	source, err := c.open(ctx, filter, logger)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	arrivals := source.pump(ctx)
	defer func() {
		cancel()
		for range arrivals { // until the reading has ended
		}
		err = errors.Join(err, source.close())
	}()
	return c.follow(ctx, arrivals, source, logger, handle, idle)
}

// follow calls handle with the events of arrivals until it returns false, and idle when
// none is there at once.
func (c *Command) follow(ctx context.Context, arrivals <-chan arrival, source *source, logger *slog.Logger, handle handler, idle func() error) error {
	tick := time.NewTicker(settleTime)
	defer tick.Stop()
	var ended <-chan time.Time
	for {
		a, ok := arrival{}, false
		select {
		case a, ok = <-arrivals:
		default:
			if err := idle(); err != nil {
				return err
			}
			select {
			case a, ok = <-arrivals:
			case <-ended:
				return nil
			case <-tick.C:
				if source.over() && len(arrivals) == 0 {
					return nil
				}
				continue
			}
		}
		switch {
		case !ok:
			return ctx.Err()
		case errors.Is(a.err, io.EOF):
			return nil
		case a.err != nil:
			return a.err
		}
		ended = nil
		e, err := a.message.Admit()
		if err != nil {
			logger.Warn("tap: a message that is no event is left out", "position", string(a.position), "error", harmless(err.Error()))
			continue
		}
		if f, ok := e.Payload.(*events.RunFinished); ok && (source.embedded || f.Reason == events.RunCompleted) {
			ended = time.After(settleTime)
		}
		if more, err := handle(e, a.position); err != nil || !more {
			return err
		}
	}
}

// start is the place where a tap begins.
type start struct {
	set      bool // by --from
	now      bool
	since    time.Time
	position events.Position
}

// parseStart parses --from.
func parseStart(text string) (start, error) {
	s := start{set: text != ""}
	if _, err := strconv.ParseUint(text, 10, 63); err == nil {
		s.position = events.Position(text)
		return s, nil
	}
	switch text {
	case "", "start":
	case "now":
		s.now = true
	default:
		var err error
		if s.since, err = time.Parse(time.RFC3339, text); err != nil {
			return s, commandline.Wrong(fmt.Errorf("--from %q: want now, start, a time such as 2026-01-02T15:04:05Z, or a position", text))
		}
	}
	return s, nil
}

// checkTypes refuses an unknown type or role.
// joined returns the names of types with commas between them.
func joined(types []events.Type) string {
	var names []string
	for _, t := range types {
		names = append(names, string(t))
	}
	return strings.Join(names, ", ")
}

func (c *Command) checkTypes() error {
	for _, t := range c.Type {
		if !slices.Contains(events.Types(), t) {
			return commandline.Wrong(fmt.Errorf("--type: %w %q; known are %s", events.ErrUnknownType, t, joined(events.Types())))
		}
	}
	for _, r := range c.Role {
		if err := r.Validate(); err != nil {
			return commandline.Wrong(fmt.Errorf("--role: %w", err))
		}
	}
	return nil
}
