// Package bustest is the conformance suite of events.Broker.
//
// Run takes a bus through every promise of the events.Broker interface. It knows
// no bus in particular; what a bus cannot do is said in Features. Timing never
// decides a test: a test that needs something not to happen within a time
// checks first that the time has really been kept.
//
// Start reading at Run; package eventstest makes the events.
package bustest
