// Package dashboard shows a run to its user: a progress bar and a live page
// over HTTP while it goes on, a table and a report in one HTML file when it
// ends.
//
// All four are views of one State, a pure projection over the run's events. A
// Follower feeds it from an ordered reader of the bus and tells subscribers
// that it changed. Nothing here is needed by a run: the package only reads, so
// a dashboard can be started, killed and started again at any time, in the
// process of the run or in another one.
//
// What State keeps is bounded however long a run is: steps are merged two by
// two when there are too many to draw, lists are capped, and the large events
// are counted without decoding them. Of those, a few are looked into once the
// rewards of their group say that it makes a good example.
//
// The package must not know how a reward is computed, where the log is or who
// runs the stages.
//
// Start reading at state.go, then follow.go; bar.go, table.go, report.go and
// server.go are the views, page and report their files for a browser.
package dashboard
