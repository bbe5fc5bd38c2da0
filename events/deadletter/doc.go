// Package deadletter is the command `codea1 deadletter`: it lists, shows and
// retries the dead letters of a run.
//
// A dead letter is an event that a stage gave up on; package stage makes them
// and events.DeadLetters stores them. This package owns only the command line
// and the printed form. Start reading at Command.
package deadletter
