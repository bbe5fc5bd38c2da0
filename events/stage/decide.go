package stage

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"codea1/events"
)

// decision is what the stage does about one delivery: publish, then answer.
type decision struct {
	publish []events.Message
	answer  answer
	after   time.Duration     // with answerRetry
	reason  events.DropReason // set when the group leaves the pipeline here
	failure error             // what went wrong, for log and metrics; nil for a success and a snooze
	letter  string            // with answerDeadLetter: why the stage gives up, with the evidence
}

type answer string

const (
	answerAck   answer = "ack"
	answerRetry answer = "retry"
	// answerDeadLetter keeps the event, and why it could not be handled, for
	// people to look at and to try again.
	answerDeadLetter answer = "dead letter"
)

// rules are the settings that decisions depend on. Decisions are pure: the
// same rules, input and result give the same decision.
type rules struct {
	stage    string
	source   string
	maxTries int
	backoff  Backoff
	hold     bool // the group of a dead letter is not dropped yet
}

// input is a delivered message: decoded, or with the reason why it is not.
type input struct {
	message  events.Message
	event    *events.Event
	err      error
	failures int       // failures seen before
	now      time.Time // time of events made here
}

// decide says what follows from a handler's result.
func (r rules) decide(in input, result Result) decision {
	if in.err != nil {
		return r.undecodable(in)
	}
	var drop *dropError
	var snooze *snoozeError
	switch {
	case errors.As(result.Err, &drop):
		return r.drop(in, drop.reason, drop.detail)
	case errors.As(result.Err, &snooze):
		return decision{answer: answerRetry, after: snooze.after}
	case errors.Is(result.Err, events.ErrClosed):
		// The bus is gone, which says nothing about the event.
		return decision{answer: answerRetry, after: r.backoff.delay(in.message.ID, in.failures+1)}
	case result.Err != nil:
		return r.fail(in, result.Err)
	}
	d := decision{answer: answerAck}
	for _, e := range result.Events {
		m, err := events.EncodeOnce(e)
		switch {
		case errors.Is(err, events.ErrTooLarge):
			return r.drop(in, events.DropTooLarge, err.Error())
		case err != nil:
			return r.fail(in, fmt.Errorf("encode what follows: %w", err))
		}
		d.publish = append(d.publish, m)
	}
	return d
}

// fail retries until the event has failed too often.
func (r rules) fail(in input, err error) decision {
	failures := in.failures + 1
	if failures >= r.maxTries {
		return r.giveUp(in, events.DropRetries, fmt.Sprintf("failed %d times, last: %v", failures, err), err)
	}
	return decision{answer: answerRetry, after: r.backoff.delay(in.message.ID, failures), failure: err}
}

// undecodable gives up on bytes that no attempt will make better. A payload of
// a newer schema is left to an instance of a newer build, for as long as a
// failure is.
func (r rules) undecodable(in input) decision {
	if errors.Is(in.err, events.ErrNewerSchema) {
		return r.fail(in, in.err)
	}
	return r.giveUp(in, events.DropMalformed, in.message.ID+": "+in.err.Error(), in.err)
}

// giveUp makes a dead letter of the event. Its group leaves the pipeline by
// name, so that nobody waits for it, unless it is held.
func (r rules) giveUp(in input, reason events.DropReason, detail string, err error) decision {
	var d decision
	if !r.hold {
		d = r.drop(in, reason, detail)
	}
	d.answer, d.failure, d.letter = answerDeadLetter, err, detail
	var panicked *PanicError
	if errors.As(err, &panicked) {
		d.letter += "\n" + string(panicked.Stack)
	}
	return d
}

// drop lets the group leave the pipeline. A message that belongs to no group
// is only dropped: there is nobody who waits for it.
func (r rules) drop(in input, reason events.DropReason, detail string) decision {
	payload := &events.GroupDropped{Stage: r.stage, Reason: reason, Detail: clip(detail)}
	var e *events.Event
	if in.event != nil {
		if plan, ok := events.PlanOf(in.event.Payload); ok {
			payload.Purpose, payload.Step, payload.Slot, payload.Groups = plan.Purpose, plan.Step, plan.Slot, plan.Groups
		}
		e = events.Caused(in.event, r.source, in.now, payload)
	} else {
		var ok bool
		payload.Purpose, payload.Step, payload.Slot, ok = parseGroup(in.message.Group)
		if !ok {
			return decision{answer: answerAck, reason: reason}
		}
		// The payload has no hash to be named by, so it cannot be a cause.
		e = events.New(in.message.Run, in.message.Group, r.source, in.now, payload)
	}
	m, err := events.Encode(e)
	if err != nil {
		return decision{answer: answerDeadLetter, reason: reason, letter: "group.dropped cannot be encoded: " + err.Error(), failure: err}
	}
	return decision{publish: []events.Message{m}, answer: answerAck, reason: reason}
}

// parseGroup reads purpose, step and slot from what events.Plan.GroupID wrote.
func parseGroup(group string) (purpose events.Purpose, step, slot int, ok bool) {
	plan := events.Plan{Purpose: events.PurposeTrain}
	if _, err := fmt.Sscanf(group, "s%d-q%d", &plan.Step, &plan.Slot); err == nil && plan.Step > 0 && plan.GroupID() == group {
		return plan.Purpose, plan.Step, plan.Slot, true
	}
	plan = events.Plan{Purpose: events.PurposeEval}
	if i := strings.LastIndexByte(group, '-'); i > 2 {
		plan.Tag = strings.TrimPrefix(group[:i], "e-")
		if _, err := fmt.Sscanf(group[i+1:], "%d", &plan.Slot); err == nil && plan.GroupID() == group {
			return plan.Purpose, 0, plan.Slot, true
		}
	}
	return "", 0, 0, false
}

// maxDetailBytes keeps what a handler says about a failure readable.
const maxDetailBytes = 2 << 10

func clip(s string) string {
	if len(s) > maxDetailBytes {
		s = s[:maxDetailBytes] + "..."
	}
	return strings.ToValidUTF8(s, "?")
}
