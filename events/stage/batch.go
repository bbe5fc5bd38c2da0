package stage

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"codea1/events"
)

// handle calls the handler on one batch, publishes the outputs and answers the
// deliveries. If ctx ends first, it gives all deliveries back.
func (s *Stage) handle(ctx context.Context, deliveries []events.Delivery) {
	began := s.config.Now()
	redelivered := 0
	for _, d := range deliveries {
		if d.Number() > 1 {
			redelivered++
		}
	}
	s.metrics.begin(len(deliveries), redelivered, began)
	defer func() { s.metrics.end(len(deliveries), began, s.config.Now(), deliveries[0].Message().TraceParent) }()

	inputs := s.decode(deliveries)
	alive, stopExtending := context.WithCancel(ctx)
	var extending sync.WaitGroup
	extending.Go(func() { extend(alive, deliveries, s.config.AckWait/extendsPerAckWait) })

	decisions := s.decideAll(ctx, inputs)
	if decisions != nil && s.publishAll(ctx, inputs, decisions) != nil {
		decisions = nil
	}
	stopExtending()
	extending.Wait()
	if decisions == nil { // ctx has ended
		s.giveBack(deliveries)
		return
	}
	answering, cancel := context.WithTimeout(ctx, s.config.AckWait)
	defer cancel()
	for i, d := range deliveries {
		s.settle(answering, d, inputs[i], decisions[i])
	}
}

func (s *Stage) decode(deliveries []events.Delivery) []input {
	inputs := make([]input, len(deliveries))
	for i, d := range deliveries {
		inputs[i] = s.input(d.Message())
	}
	return inputs
}

func (s *Stage) input(m events.Message) input {
	decode := m.Decode
	if s.config.TextsOnly {
		decode = m.DecodeTexts
	}
	e, err := decode()
	if err == nil {
		err = e.Check()
	}
	return input{message: m, event: e, err: err, failures: s.failures.of(m.ID), now: s.config.Now()}
}

// decideAll calls the handler and decides on its results. It returns nil if ctx
// has ended, because then an error is not the event's.
func (s *Stage) decideAll(ctx context.Context, inputs []input) []decision {
	var batch []*events.Event
	for _, in := range inputs {
		if in.err == nil {
			batch = append(batch, in.event)
		}
	}
	var results []Result
	if len(batch) > 0 {
		results = s.call(ctx, batch)
	}
	decisions := make([]decision, len(inputs))
	for i, in := range inputs {
		var result Result
		if in.err == nil {
			result, results = results[0], results[1:]
		}
		if result.Err != nil && ctx.Err() != nil {
			return nil
		}
		in.now = s.config.Now()
		decisions[i] = s.rules.decide(in, result)
	}
	return decisions
}

// call runs the handler on a batch. If the whole batch fails, it runs the
// handler on each event separately, so that one event cannot fail the others.
func (s *Stage) call(ctx context.Context, batch []*events.Event) []Result {
	results, err := s.callOnce(ctx, batch)
	if err == nil {
		return results
	}
	if len(batch) == 1 || ctx.Err() != nil {
		results = make([]Result, len(batch))
		for i := range results {
			results[i].Err = err
		}
		return results
	}
	s.logger.Warn("the batch failed, handling its events one by one", "events", len(batch), "error", err)
	results = nil
	for _, e := range batch {
		results = append(results, s.call(ctx, []*events.Event{e})...)
	}
	return results
}

// callOnce turns a panic or a wrong number of results into an error.
func (s *Stage) callOnce(ctx context.Context, batch []*events.Event) (results []Result, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.config.HandleTimeout, &TimeoutError{After: s.config.HandleTimeout})
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			panicked := &PanicError{Value: p, Stack: debug.Stack()}
			s.logger.Error("handler panicked", "panic", p, "stack", string(panicked.Stack))
			results, err = nil, panicked
		}
	}()
	began := time.Now()
	defer func() { s.metrics.handler.Observe(time.Since(began).Seconds()) }()
	results = s.config.Handler(context.WithValue(ctx, metricsKey{}, s.metrics), slices.Clone(batch))
	if len(results) != len(batch) {
		return nil, &ResultsError{Results: len(results), Events: len(batch)}
	}
	return results, nil
}

// publishAll publishes the messages of all decisions before any delivery is
// answered. If an output contradicts a stored event, the group of its input is
// dropped instead.
func (s *Stage) publishAll(ctx context.Context, inputs []input, decisions []decision) error {
	var all []events.Message
	for _, d := range decisions {
		all = append(all, d.publish...)
	}
	err := s.publisher.Publish(ctx, all...)
	if !errors.Is(err, events.ErrLineage) {
		return err
	}
	for i := range decisions {
		err := s.publisher.Publish(ctx, decisions[i].publish...)
		if errors.Is(err, events.ErrLineage) && decisions[i].reason == "" {
			decisions[i] = s.rules.drop(inputs[i], events.DropLineage, err.Error())
			err = s.publisher.Publish(ctx, decisions[i].publish...)
		}
		// Another stage has dropped the group already; the first group.dropped
		// stays.
		if err != nil && !errors.Is(err, events.ErrLineage) {
			return err
		}
	}
	return nil
}

// settle answers one delivery. It repeats an answer that the bus does not take,
// until ctx ends AckWait after the batch was published: then the event is
// delivered again anyway.
func (s *Stage) settle(ctx context.Context, d events.Delivery, in input, what decision) {
	s.metrics.count(what)
	s.log(in, what)
	if what.answer == answerRetry {
		if what.failure != nil {
			s.failures.add(in.message.ID)
		}
	} else {
		s.failures.forget(in.message.ID)
	}
	for failures := 1; ; failures++ {
		var err error
		switch what.answer {
		case answerAck:
			err = d.Ack(ctx)
		case answerRetry:
			err = d.Retry(ctx, what.after)
		case answerDeadLetter:
			err = d.DeadLetter(ctx, what.letter)
		}
		s.asked(ctx, opAnswer, err)
		if err == nil {
			return
		}
		if errors.Is(err, events.ErrClosed) || sleep(ctx, s.config.Backoff.delay(in.message.ID, failures)) != nil {
			s.logger.Info("cannot answer, the event will be delivered again", "type", in.message.Type, "group", in.message.Group, "error", err)
			return
		}
	}
}

func (s *Stage) log(in input, what decision) {
	if what.answer == answerAck && what.reason == "" {
		return
	}
	l := s.logger.With("type", in.message.Type, "group", in.message.Group)
	switch {
	case what.answer == answerDeadLetter:
		l.Error("gave up, the event is a dead letter", "group_dropped", what.reason != "", "error", what.failure)
	case what.reason != "":
		l.Warn("group dropped", "reason", what.reason, "error", what.failure)
	case what.failure != nil:
		l.Warn("event failed", "failures", in.failures+1, "again_in", what.after, "error", what.failure)
	case what.answer == answerRetry:
		l.Debug("snoozed", "again_in", what.after)
	}
}

// giveBackTimeout bounds the time to give deliveries back. Without it they
// would be delivered again after AckWait.
const giveBackTimeout = 2 * time.Second

func (s *Stage) giveBack(deliveries []events.Delivery) {
	ctx, cancel := context.WithTimeout(context.Background(), giveBackTimeout)
	defer cancel()
	for _, d := range deliveries {
		if d.Retry(ctx, 0) != nil {
			return // delivered again after AckWait
		}
	}
}

// extend restarts AckWait of the deliveries at intervals until ctx ends. If
// that fails, the event is delivered again, which is safe.
func extend(ctx context.Context, deliveries []events.Delivery, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			for _, d := range deliveries {
				_ = d.Extend(ctx)
			}
		}
	}
}
