// Package eventlog keeps the event log of a run: every event exactly once, in
// order, in Badger, linked by a hash chain. FORMAT.md describes the directory.
//
// Log.Append commits events, the bus position after them and the changes of the
// Mistake Book in one transaction, and returns when it is on disk. Log.Begin
// returns earlier, so that the next batch is prepared while this one is
// committed. A Recorder that is killed at any time continues at Log.Position:
// no event is lost, repeated or counted twice. A Log reads its whole state from
// its directory.
//
// If two payloads appear under one event ID, the first in the log stands. Events
// that follow from the other are refused, and the Recorder publishes one
// group.dropped for the group.
//
// Log.Compact removes token ids and log-probs from old payloads. The chain
// covers the hashes of both forms, so it stays valid. Log.StateAt and
// Log.BookAt return the state of the run and the Mistake Book after any event.
//
// The package must not know which bus delivers the events, or which stage made
// them. It does not interpret the history of a run: packages audit, query,
// export and fork do, through the Reader interface.
//
// Start reading at log.go, then append.go (from a batch to a transaction) and
// recorder.go (from the bus to the log).
package eventlog
