// Package dashboard shows a run to its user: a progress bar and a live page
// over HTTP during the run, a table and a report in one HTML file at its end.
//
// All four are views of one State, a pure projection over the run's events. A
// Follower feeds it from an ordered reader of the bus and notifies subscribers
// of changes. The package only reads, and no run needs it. A dashboard can be
// started, killed and started again at any time, in the process of the run or in
// another one.
//
// The size of State is bounded for a run of any length. Steps are merged two by
// two beyond the points of a chart, lists have limits, and the large events are
// counted without decoding them. State decodes a few of them for its examples,
// which it selects by the rewards of their groups.
//
// The package does not depend on the reward formulas, on the log, or on the
// processes of the stages.
//
// Start reading at state.go, then follow.go. bar.go, table.go, report.go and
// server.go are the views. The folders page and report hold the files for a
// browser.
package dashboard
