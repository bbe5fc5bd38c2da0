// Package dashboard shows a run to its user: a progress bar while it goes on,
// a table when it ends, and a live page over HTTP.
//
// All three are views of one State, a pure projection over the run's events. A
// Follower feeds it from an ordered reader of the bus and tells subscribers
// that it changed. Nothing here is needed by a run: the package only reads, so
// a dashboard can be started, killed and started again at any time, in the
// process of the run or in another one.
//
// What State keeps is bounded however long a run is: steps are merged two by
// two when there are too many to draw, lists are capped, and events whose
// payload is not shown are counted without decoding them.
//
// The package must not know how a reward is computed, where the log is or who
// runs the stages.
//
// Start reading at state.go, then follow.go; bar.go, table.go and server.go are
// the views.
package dashboard
