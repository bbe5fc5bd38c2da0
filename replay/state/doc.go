// Package state is where a run stands, as its events tell it: Cursor, what is
// posed, ended and trained; Metrics, what the steps and evaluations came to; and
// Checkpoints, which policy versions there are.
//
// Each is a pure fold: the same events in the same order give the same State,
// byte for byte (Encode). They do no I/O, have no clock, and know neither the
// log that keeps them nor who asks. A State is not safe for concurrent use; its
// owner guards it. The Mistake Book, the fourth fold, has a package of its own.
//
// Start reading at State.Apply.
package state
