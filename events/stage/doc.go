// Package stage is the one loop that all workers share: consume a batch of
// events, handle it, publish what follows, acknowledge.
//
// A Stage owns when and how often a handler is called; the handler owns what
// an event means. Between them there are four answers: the events that follow,
// an error (try again, with backoff, until MaxTries), Snooze (try again
// later; nothing is wrong) and Drop (the group leaves the pipeline, and why).
// A group that the stage gives up on becomes a group.dropped event: nothing
// vanishes silently. An event that the stage itself could not get done (it
// failed too often, its handler panicked, its bytes are no payload) is also
// kept as a dead letter, which can be tried again while its group is held.
//
// An event may be handled more than once: after a crash, a lost
// acknowledgement or a failure elsewhere in its batch. What follows from it is
// published before it is acknowledged and has IDs derived from its own, so
// handling it again repeats nothing that others see.
//
// The package must not know which bus is in use, nor any stage in particular.
//
// A stage tells a scaler how much it has to do (signals.go; the metrics are
// listed in SCALING.md), and whoever runs the process whether it is well
// (contact.go, probe.go).
//
// Start reading at Config and Handler, then decide.go for what becomes of each
// outcome, then stage.go for the loop.
package stage
