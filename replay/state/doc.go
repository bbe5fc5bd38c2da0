// Package state derives the state of a run from its events. It has three folds:
// Cursor holds the groups that are posed or ended and the trained steps, Metrics
// the figures of steps and evaluations, and Checkpoints the policy versions.
//
// A fold is pure: the same events in the same order give the same State, byte
// for byte (Encode). The package does no I/O, has no clock, and knows neither
// the log that stores a State nor its readers. A State is not safe for
// concurrent use; its owner guards it. The Mistake Book, the fourth fold, has a
// package of its own.
//
// Start reading at State.Apply.
package state
