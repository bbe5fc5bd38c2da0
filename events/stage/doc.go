// Package stage is the loop of all workers: consume a batch of events, handle
// it, publish the outputs, acknowledge.
//
// A Stage decides when and how often a handler is called; the handler decides
// what an event leads to. A handler returns one of four results: output events,
// an error (the stage tries again with backoff, up to MaxTries), Snooze (the
// event comes back later; nothing is wrong) or Drop (the group leaves the
// pipeline, with a reason). A group that the stage gives up on becomes a
// group.dropped event: no group vanishes silently. If the stage gives up because
// of failures, a panic or a malformed payload, it also stores the event as a
// dead letter, which can be redelivered while its group is held.
//
// An event may be handled more than once: after a crash, a lost acknowledgement
// or a failure elsewhere in its batch. Outputs are published before the
// acknowledgement and their IDs derive from the input ID, so a repeated delivery
// publishes nothing new.
//
// The package must not know which bus is used, nor any particular stage.
//
// Metrics tell an autoscaler how much work a stage has (signals.go, SCALING.md).
// Health and Probe tell an operator whether a process works (contact.go,
// probe.go).
//
// Start reading at Config and Handler, then decide.go for the decision about
// each result, then stage.go for the loop.
package stage
