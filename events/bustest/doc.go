// Package bustest is the conformance suite of events.Broker.
//
// Run checks every promise of the events.Broker interface. It knows no particular
// bus; Features lists the abilities of a bus. Timing never decides a test: a test
// that expects no event within a time first checks that it kept the time itself.
//
// Start reading at Run; package eventstest makes the events.
package bustest
