package natsbus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"codea1/events/internal/client"
)

func (b *Bus) streamConfig(run string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        streamName(run),
		Description: "codea1 run " + run,
		Subjects:    []string{runSubjects(run)},
		Storage:     jetstream.FileStorage,
		Replicas:    b.config.Replicas,
		Retention:   jetstream.LimitsPolicy,
		MaxBytes:    cmp.Or(b.config.MaxStreamBytes, defaultMaxStreamBytes),
		MaxMsgs:     b.config.MaxStreamMessages,
		MaxMsgSize:  maxMessageBytes,
		// A subject takes one message, from any publisher, and keeps it for
		// ever.
		MaxMsgsPerSubject:    1,
		Discard:              jetstream.DiscardNew,
		DiscardNewPerSubject: true,
		DenyDelete:           true,
		DenyPurge:            true,
		AllowDirect:          true,
	}
}

// EnsureStream creates the stream of a run, or applies the limits of the
// configuration to an existing one. Publish, Consume and Read also create a
// missing stream, but do not change an existing one.
func (b *Bus) EnsureStream(ctx context.Context, run string) error {
	if err := client.Ended(ctx, b.ctx); err != nil {
		return err
	}
	if err := validNames(run); err != nil {
		return err
	}
	s, err := b.makeStream(ctx, run, b.js.CreateOrUpdateStream)
	if err == nil && s.CachedInfo().Config.Replicas != b.config.Replicas {
		// Another process has created it meanwhile.
		s, err = b.makeStream(ctx, run, b.js.CreateOrUpdateStream)
	}
	if err != nil {
		return err
	}
	if has := s.CachedInfo().Config.MaxBytes; has < b.config.MaxStreamBytes {
		return fmt.Errorf("nats: the server has no room for more than the %d bytes of the stream of run %q", has, run)
	}
	return nil
}

// stream returns the stream of a run and creates it if it is missing.
func (b *Bus) stream(ctx context.Context, run string) (jetstream.Stream, error) {
	b.mu.Lock()
	s, ok := b.streams[run]
	b.mu.Unlock()
	if ok {
		return s, nil
	}
	if err := validNames(run); err != nil {
		return nil, err
	}
	s, err := b.findStream(ctx, run)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err = b.makeStream(ctx, run, b.js.CreateStream)
	}
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.streams[run] = s
	return s, nil
}

// HasRun implements events.Broker.
func (b *Bus) HasRun(ctx context.Context, run string) (bool, error) {
	if err := client.Ended(ctx, b.ctx); err != nil {
		return false, err
	}
	if err := validNames(run); err != nil {
		return false, err
	}
	_, err := b.findStream(ctx, run)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return false, nil
	}
	return err == nil, err
}

func (b *Bus) findStream(ctx context.Context, run string) (s jetstream.Stream, err error) {
	err = b.ask(ctx, func(ctx context.Context) error {
		var err error
		s, err = b.js.Stream(ctx, streamName(run))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("nats: stream of run %q: %w", run, err)
	}
	return s, nil
}

// makeStream creates the stream of a run with create. If another process has
// created it meanwhile, its limits stay.
func (b *Bus) makeStream(ctx context.Context, run string, create func(context.Context, jetstream.StreamConfig) (jetstream.Stream, error)) (jetstream.Stream, error) {
	config := b.streamConfig(run)
	for began := time.Now(); ; {
		var s jetstream.Stream
		err := b.ask(ctx, func(ctx context.Context) error {
			var err error
			s, err = create(ctx, config)
			return err
		})
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			s, err = b.findStream(ctx, run)
			if !errors.Is(err, jetstream.ErrStreamNotFound) {
				return s, err
			}
			// The answering node of a cluster does not know it yet.
			if err := client.Pause(ctx, b.ctx, retryPause); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil && !isNoRoom(err) {
			return nil, fmt.Errorf("nats: stream of run %q: %w", run, err)
		}
		if err == nil {
			if limit := b.streamConfig(run).MaxBytes; config.MaxBytes < limit {
				b.logger.Warn("nats: the server has no room for the default stream limit", "run", run, "bytes", config.MaxBytes, "wanted", limit)
			}
			return s, nil
		}
		// Another process may be making this very stream, which takes the room.
		if err := client.Pause(ctx, b.ctx, retryPause); err != nil {
			return nil, err
		}
		if s, err := b.findStream(ctx, run); err == nil {
			return s, nil
		}
		given := b.config.MaxStreamBytes != 0
		if given && time.Since(began) > requestTimeout || !given && config.MaxBytes/2 < minStreamBytes {
			return nil, fmt.Errorf("nats: the server has no room for a stream of %d bytes for run %q; add storage or set a lower --bus-stream-mib: %w",
				config.MaxBytes, run, err)
		}
		if !given {
			config.MaxBytes /= 2
		}
	}
}

// isNoRoom reports whether the servers cannot reserve the limit of a stream.
func isNoRoom(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == errCodeInsufficientStorage ||
		api.ErrorCode == errCodeNoPeers && strings.Contains(api.Description, "insufficient storage"))
}
