// Package mistakes is the Mistake Book of Code-A1: for each question, the tests
// that answers have failed, with how often. The curriculum poses the most
// frequent ones again as historical tests.
//
// A Book is a pure projection of group.rewarded events: the same events in the
// same order give the same Book, byte for byte (Encode). It does no I/O, has no
// clock, and knows neither the log that keeps it nor who asks. A Book is not
// safe for concurrent use; its owner guards it.
//
// Start reading at Book.Apply.
package mistakes
