// Package replaytest makes the events of small runs for the tests of the replay
// packages: groups without content (Group) and a whole run (Tell, Story). It
// does not import the log, so that the log's own tests can use it.
package replaytest
