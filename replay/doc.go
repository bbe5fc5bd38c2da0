// Package replay keeps the truth of a run: the event log, every event of the
// run exactly once and in order, in Badger, each linked to the one before it
// by a hash chain. FORMAT.md describes what is on disk.
//
// Log.Append commits events, the bus position after them and the Mistake Book
// that follows from them in one transaction, and returns once it is on disk;
// Log.Begin returns while that is on its way, so that the next batch is read,
// hashed and looked up (admit.go, seen.go) meanwhile. So a Recorder that is
// killed anywhere reads on from Log.Position and nothing is lost, repeated or
// counted twice. Everything a Log knows when it opens comes from its directory
// alone.
//
// Log.Compact takes token ids and log-probs out of old payloads, which the chain
// covers by their hashes, so that it holds still. State and StateAt say where the
// run stood at any event: package state folds it, state.go keeps a snapshot.
//
// Where two payloads appear under one event ID, the first in the log stands;
// what descends from the other is refused, and the Recorder publishes one
// group.dropped for it.
//
// What is asked of a log afterwards is in files of its own: lineage.go and
// explain.go (where a weight comes from), history.go (what cannot have been),
// rescore.go (another reward rule), predicate.go (who did that), bookat.go (the
// Mistake Book then), export.go (tables), rebuild.go and retrain.go (the same
// again). All of it works on a snapshot, so on a live run too.
//
// A run goes on elsewhere by fork.go (a new run with the same beginning;
// origin.go holds it to that) and seed.go (the events of a log on another bus);
// rebuild_bus.go is the way back, from a bus to a log.
//
// The package must not know which bus delivers the events or which stage made
// them. Reward rules, engines, buses and checkpoints come in from outside, as
// Recipes, Retrainer and Host.
//
// Start reading at log.go, then append.go for how a batch becomes a
// transaction, and recorder.go for who feeds it. A command's flags and output
// are in command_*.go.
package replay
