// Package eventstest makes small valid events for tests: the events of one
// group, from problem.posed to group.rewarded, each caused by the one before.
//
// It knows no bus and no stage. Start reading at Chain.
package eventstest
