package tap

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"codea1/events"
	"codea1/events/connect"
	"codea1/events/natsbus"
	"codea1/events/rundir"
	"codea1/replay/eventlog"
)

// Host knows the configuration of a run.
type Host interface {
	// Bus returns the bus that the configuration in a run directory names.
	Bus(dir string) (*connect.Flags, error)
}

// source is where a tap reads.
type source struct {
	reader   events.Reader
	embedded bool           // the bus ends with the attempt
	address  string         // file with the address of an embedded server; empty if unknown
	at       string         // the address that is read
	closers  []func() error // called in reverse order
}

// arrival is an event that was read, or the end of reading.
type arrival struct {
	message  events.Message
	position events.Position
	err      error
}

// ahead bounds the events that are read and not printed yet.
const ahead = 256

// pump reads until an error or until ctx ends, and closes the channel then.
func (s *source) pump(ctx context.Context) <-chan arrival {
	arrivals := make(chan arrival, ahead)
	go func() {
		defer close(arrivals)
		for {
			var a arrival
			a.message, a.position, a.err = s.reader.Next(ctx)
			if ctx.Err() != nil {
				return
			}
			select {
			case arrivals <- a:
			case <-ctx.Done():
				return
			}
			if a.err != nil {
				return
			}
		}
	}()
	return arrivals
}

// over reports whether the embedded server has been shut down. A killed one leaves
// its address: it may come back.
func (s *source) over() bool {
	if s.address == "" {
		return false
	}
	at, err := os.ReadFile(s.address)
	return err != nil || string(at) != s.at
}

func (s *source) close() (err error) {
	for i := len(s.closers) - 1; i >= 0; i-- {
		err = errors.Join(err, s.closers[i]())
	}
	return err
}

// open opens the source of the run: the bus of --bus, the embedded server or the bus
// of a run directory, or its log if the run is not in progress.
func (c *Command) open(ctx context.Context, f *filter, logger *slog.Logger) (*source, error) {
	if c.Bus.URL != connect.Embedded {
		return openBus(ctx, &c.Bus, c.RunName, f, logger)
	}
	dir, err := rundir.Find(c.RunsDir, c.RunName)
	if err != nil {
		return nil, fmt.Errorf("%w; --bus names the bus of a run on another machine", err)
	}
	if s, err := openEmbedded(ctx, dir, f, logger); s != nil || err != nil {
		return s, err
	}
	s, finished, err := openLog(ctx, dir, f, logger)
	if err != nil && !errors.Is(err, eventlog.ErrNoLog) {
		return nil, err
	}
	bus, err := c.Host.Bus(dir)
	switch {
	case err != nil && s == nil:
		return nil, err
	case s != nil && (finished || err != nil || bus.URL == connect.Embedded):
		return s, nil
	case s != nil:
		if err := s.close(); err != nil {
			return nil, err
		}
	case bus.URL == connect.Embedded:
		return nil, fmt.Errorf("run %s has no log and is not in progress", dir)
	}
	return openBus(ctx, bus, filepath.Base(dir), f, logger)
}

// openEmbedded opens the embedded server of a run in progress; nil if none answers.
// Without --from it uses the read-only login. That login has no stored events, so
// --from takes the login of the pipeline, which the owner of the directory has.
func openEmbedded(ctx context.Context, dir string, f *filter, logger *slog.Logger) (*source, error) {
	user := natsbus.TapUser
	if f.start.set && !f.start.now {
		user = natsbus.PipelineUser
	}
	flags := connect.Running(ctx, dir, user)
	if flags == nil {
		return nil, ctx.Err()
	}
	s, err := openBus(ctx, flags, filepath.Base(dir), f, logger)
	if s != nil {
		s.embedded, s.address, s.at = true, natsbus.AddressFile(rundir.NATS(dir)), strings.TrimPrefix(flags.URL, "nats://")
	}
	return s, err
}

// openBus opens the bus of flags.
func openBus(ctx context.Context, flags *connect.Flags, run string, f *filter, logger *slog.Logger) (_ *source, err error) {
	if err := events.ValidName(run); err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	if err := flags.CheckReachable(ctx); err != nil {
		return nil, err
	}
	bus, err := flags.Open(ctx, "codea1-"+run+"-tap", logger.With("part", "bus"))
	if err != nil {
		return nil, err
	}
	s := &source{closers: []func() error{bus.Close}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if nats, ok := bus.(*natsbus.Bus); ok && tapUser(flags) == natsbus.TapUser {
		if f.start.set && !f.start.now {
			return nil, fmt.Errorf("--from: the login %s follows new events only; name the directory of the run, or leave out --from", natsbus.TapUser)
		}
		s.embedded = true
		s.reader, err = nats.Tap(run)
		return s, err
	}
	has, err := bus.HasRun(ctx, run)
	if err == nil && !has {
		err = fmt.Errorf("there is no run %s at %s", run, connect.PublicURL(flags.URL))
	}
	if err != nil {
		return nil, err
	}
	s.reader, err = bus.Read(ctx, events.ReadConfig{Run: run, Types: f.types, From: f.start.position, New: f.start.now || !f.start.set})
	return s, err
}

// tapUser returns the user of a bus login.
func tapUser(flags *connect.Flags) string {
	if u, err := url.Parse(flags.URL); err == nil && u.User != nil {
		return u.User.Username()
	}
	return flags.User
}

// openLog opens the log of a run, and reports whether its newest attempt has ended.
func openLog(ctx context.Context, dir string, f *filter, logger *slog.Logger) (_ *source, finished bool, err error) {
	log, err := eventlog.Open(rundir.Log(dir), eventlog.Options{ReadOnly: true, Logger: logger})
	if err != nil {
		return nil, false, err
	}
	s := &source{closers: []func() error{log.Close}}
	for r, err := range log.Read(ctx, eventlog.ReadOptions{Types: []events.Type{events.TypeRunStarted, events.TypeRunFinished}}) {
		if err != nil {
			return nil, false, errors.Join(err, s.close())
		}
		finished = r.Message.Type == events.TypeRunFinished
	}
	options := eventlog.ReadOptions{Types: f.types}
	if f.start.position != events.Start {
		after, err := strconv.ParseUint(string(f.start.position), 10, 63)
		if last, _ := log.Last(); err == nil && after > last {
			err = fmt.Errorf("--from %s: the log ends at event %d", f.start.position, last)
		}
		if err != nil {
			return nil, false, errors.Join(err, s.close())
		}
		options.From = after + 1
	}
	if f.start.now {
		last, _ := log.Last()
		options.From = last + 1
	}
	s.reader = log.Replay(ctx, options)
	s.closers = append(s.closers, s.reader.Close)
	return s, finished, nil
}
