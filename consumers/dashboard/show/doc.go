// Package show is the commands that show a run on a page: `codea1 dashboard` of one in
// progress or of a finished one (command.go), and the stage dashboard (stage.go).
//
// It owns the choice between the bus of a run and its log (source.go), and the other runs
// that a page can lay over the shown one (runs.go). It must not know how a log is read:
// a Host opens it. Start reading at command.go.
package show
