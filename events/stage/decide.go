package stage

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"codea1/events"
)

// decision is what the stage does about one delivery: publish messages, then
// answer.
type decision struct {
	publish []events.Message
	answer  answer
	after   time.Duration     // with answerRetry
	reason  events.DropReason // set if the group leaves the pipeline
	failure error             // error for log and metrics; nil after a success or a snooze
	letter  string            // with answerDeadLetter: the reason, with evidence
}

type answer string

const (
	answerAck   answer = "ack"
	answerRetry answer = "retry"
	// answerDeadLetter stores the event and the reason for people to inspect
	// and redeliver.
	answerDeadLetter answer = "dead letter"
)

// rules are the settings that decisions depend on. A decision is a pure
// function of rules, input and result.
type rules struct {
	stage    string
	source   string
	maxTries int
	backoff  Backoff
	hold     bool // the group of a dead letter is not dropped at once
	keep     bool // no group is dropped
}

// input is a delivered message: decoded, or with the error of decoding it.
type input struct {
	message  events.Message
	event    *events.Event
	err      error
	failures int       // earlier failures in this replica
	now      time.Time // time of the events made here
}

// decide returns the decision for a handler's result.
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
		// The bus is closed; the event has not failed.
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
			return r.fail(in, fmt.Errorf("encode an output: %w", err))
		}
		d.publish = append(d.publish, m)
	}
	return d
}

// fail retries until the event has failed MaxTries times.
func (r rules) fail(in input, err error) decision {
	failures := in.failures + 1
	if failures >= r.maxTries {
		return r.giveUp(in, fmt.Sprintf("failed %d times, last: %v", failures, err), err)
	}
	return decision{answer: answerRetry, after: r.backoff.delay(in.message.ID, failures), failure: err}
}

// undecodable makes a message that is no event a dead letter and drops no group:
// every login that may publish the type can make such a message, and the event of the
// same name counts as soon as it is there. A payload of a newer schema version is
// retried like a failure, because a replica of a newer build can decode it.
func (r rules) undecodable(in input) decision {
	failures := in.failures + 1
	if errors.Is(in.err, events.ErrNewerSchema) && failures < r.maxTries {
		return decision{answer: answerRetry, after: r.backoff.delay(in.message.ID, failures), failure: in.err}
	}
	return decision{answer: answerDeadLetter, failure: in.err, letter: in.message.ID + ": " + in.err.Error()}
}

// giveUp makes the event a dead letter. Unless groups are held, it drops the
// group, so that nothing waits for it.
func (r rules) giveUp(in input, detail string, err error) decision {
	var d decision
	if !r.hold {
		d = r.drop(in, events.DropRetries, detail)
	}
	d.answer, d.failure, d.letter = answerDeadLetter, err, detail
	var panicked *PanicError
	if errors.As(err, &panicked) {
		d.letter += "\n" + string(panicked.Stack)
	}
	return d
}

// drop makes the group leave the pipeline, unless the stage keeps groups.
func (r rules) drop(in input, reason events.DropReason, detail string) decision {
	if r.keep {
		return decision{answer: answerDeadLetter, letter: string(reason) + ": " + detail, failure: &dropError{reason, detail}}
	}
	payload := &events.GroupDropped{Stage: r.stage, Reason: reason, Detail: clip(detail)}
	if plan, ok := events.PlanOf(in.event.Payload); ok {
		payload.Purpose, payload.Step, payload.Slot, payload.Groups = plan.Purpose, plan.Step, plan.Slot, plan.Groups
	}
	m, err := events.Encode(events.Caused(in.event, r.source, in.now, payload))
	if err != nil {
		return decision{answer: answerDeadLetter, reason: reason, letter: "group.dropped cannot be encoded: " + err.Error(), failure: err}
	}
	return decision{publish: []events.Message{m}, answer: answerAck, reason: reason}
}

// maxDetailBytes bounds the detail of a group.dropped.
const maxDetailBytes = 2 << 10

func clip(s string) string {
	if len(s) > maxDetailBytes {
		s = s[:maxDetailBytes] + "..."
	}
	return strings.ToValidUTF8(s, "?")
}
