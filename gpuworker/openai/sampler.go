package openai

import (
	"context"
	"encoding/json"
	"fmt"

	"golang.org/x/sync/errgroup"

	"codea1/events"
	"codea1/gpuworker"
)

// Sampler samples from a model on a server. It is safe for concurrent use.
type Sampler struct {
	client *client
	slots  chan struct{} // one token per request at the same time
}

var _ gpuworker.Sampler = (*Sampler)(nil)

// New returns a Sampler. It sends nothing.
func New(options Options) (*Sampler, error) {
	options = options.withDefaults()
	if err := options.validate(); err != nil {
		return nil, err
	}
	client, err := newClient(options)
	if err != nil {
		return nil, err
	}
	return &Sampler{client: client, slots: make(chan struct{}, options.Requests)}, nil
}

// Once returns a Sampler that does not repeat a failed request: for a check before a run
// begins. It has the connections of s.
func (s *Sampler) Once() *Sampler {
	return &Sampler{client: &client{Options: s.client.Options, http: s.client.http, once: true}, slots: s.slots}
}

// Probe asks for one token, once. It returns an error if the server cannot be reached,
// refuses the key or the model, or lacks a feature that the options ask for. A server that is
// busy or starting is accepted: Sample waits for it.
func (s *Sampler) Probe(ctx context.Context) error {
	if o := &s.client.Options; o.KeyFile != "" && o.inClear() {
		o.Logger.Warn("the key is sent without encryption: use an https:// address outside of a trusted network", "server", o.URL)
	}
	call := s.newCall([]gpuworker.Message{{Role: "user", Content: "1"}}, 1, gpuworker.SamplingParams{Temperature: 1, TopP: 1, MaxTokens: 1})
	body, err := json.Marshal(call.request)
	if err != nil {
		return err
	}
	f := s.client.try(ctx, call.question(), body)
	switch {
	case f == nil:
		return nil
	case f.busy:
		s.client.Logger.Warn("the model server is busy or starting", "server", s.client.URL, "error", f.err)
		return nil
	}
	return fmt.Errorf("model %s at %s: %w", s.client.Model, s.client.URL, f.err)
}

// EncodePrompt returns no tokens: the server encodes the messages.
func (*Sampler) EncodePrompt([]gpuworker.Message) ([]int32, error) { return nil, nil }

// Sample implements gpuworker.Sampler. It sends one request per seed, so that a
// completion does not depend on the others. The context of a server is not known here:
// a prompt that exceeds it is refused by the server.
func (s *Sampler) Sample(ctx context.Context, requests []gpuworker.SampleRequest, params gpuworker.SamplingParams) ([][]events.Completion, error) {
	out := make([][]events.Completion, len(requests))
	asking, ctx := errgroup.WithContext(ctx)
	for i, r := range requests {
		if len(r.Messages) == 0 {
			return nil, fmt.Errorf("%w: request %d has no messages", gpuworker.ErrBadRequest, i)
		}
		out[i] = make([]events.Completion, len(r.Seeds))
		for j, seed := range r.Seeds {
			asking.Go(func() error {
				select {
				case s.slots <- struct{}{}:
					defer func() { <-s.slots }()
				case <-ctx.Done():
					return ctx.Err()
				}
				call := s.newCall(r.Messages, seed, params)
				err := s.client.ask(ctx, call.question())
				out[i][j] = call.completion
				return err
			})
		}
	}
	if err := asking.Wait(); err != nil {
		return nil, err
	}
	return out, nil
}

// LoadWeights returns ErrNoWeights.
func (*Sampler) LoadWeights(context.Context, string) error { return ErrNoWeights }

// Close closes the idle connections.
func (s *Sampler) Close() error {
	s.client.http.CloseIdleConnections()
	return nil
}
