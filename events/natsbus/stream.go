package natsbus

import (
	"context"
	"errors"
	"fmt"

	"codea1/events/internal/client"

	"github.com/nats-io/nats.go/jetstream"
)

func (b *Bus) streamConfig(run string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        streamName(run),
		Description: "codea1 run " + run,
		Subjects:    []string{runSubjects(run)},
		Storage:     jetstream.FileStorage,
		Replicas:    b.config.Replicas,
		Retention:   jetstream.LimitsPolicy,
		MaxBytes:    b.config.MaxStreamBytes,
		MaxMsgs:     b.config.MaxStreamMessages,
		MaxMsgSize:  maxMessageBytes,
		// A subject takes one message and keeps it, whoever publishes: what a
		// run has once said is neither replaced nor forgotten.
		MaxMsgsPerSubject:    1,
		Discard:              jetstream.DiscardNew,
		DiscardNewPerSubject: true,
		DenyDelete:           true,
		DenyPurge:            true,
		AllowDirect:          true,
	}
}

// EnsureStream creates the stream of a run, or brings the limits of an
// existing one to those of the configuration. Publish, Consume and Read
// create a missing stream by themselves and leave an existing one alone.
func (b *Bus) EnsureStream(ctx context.Context, run string) error {
	if err := client.Ended(ctx, b.ctx); err != nil {
		return err
	}
	if err := validNames(run); err != nil {
		return err
	}
	err := b.ask(ctx, func(ctx context.Context) error {
		_, err := b.js.CreateOrUpdateStream(ctx, b.streamConfig(run))
		return err
	})
	if err != nil {
		return b.streamError(run, err)
	}
	return nil
}

// stream returns the stream of a run and creates it when there is none.
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
	err := b.ask(ctx, func(ctx context.Context) error {
		var err error
		s, err = b.js.Stream(ctx, streamName(run))
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			s, err = b.js.CreateStream(ctx, b.streamConfig(run))
			if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
				// Another process, with other limits, was faster.
				s, err = b.js.Stream(ctx, streamName(run))
			}
		}
		return err
	})
	if err != nil {
		return nil, b.streamError(run, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.streams[run] = s
	return s, nil
}

func (b *Bus) streamError(run string, err error) error {
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == errCodeInsufficientStorage {
		return fmt.Errorf("nats: the server has no room for a stream of %d bytes for run %q; lower the stream limit: %w",
			b.config.MaxStreamBytes, run, err)
	}
	return fmt.Errorf("nats: stream of run %q: %w", run, err)
}
