// Package mistakes is the Mistake Book of Code-A1: for each problem, the tests
// that answers have failed, with their frequencies. The curriculum replays the
// most frequent tests as historical tests.
//
// A Book is a pure projection of group.rewarded events: the same events in the
// same order give the same Book, byte for byte (Encode). The package does no
// I/O, has no clock, and knows neither the log that stores a Book nor its
// readers. A Book is not safe for concurrent use; its owner guards it.
//
// Start reading at Book.Apply.
package mistakes
