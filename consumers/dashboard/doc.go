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
// two beyond the points of a chart, and lists have limits. Texts of the Mistake
// Book take up to 48 MiB, the list of groups up to 12 MiB, events that wait for the
// rewards of their group up to 32 MiB. The page gets a whole group by reading its
// events from the bus again, for at most two requests at a time.
//
// The package does not depend on the reward formulas, on the log, or on the
// processes of the stages.
//
// Start reading at state.go, then follow.go. bar.go, table.go, report.go and
// server.go are the views. The folder page holds the files for a browser. The report
// is the same page with its data inside.
package dashboard
