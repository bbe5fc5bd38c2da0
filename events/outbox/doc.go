// Package outbox keeps the output events of a stage on disk before they are
// published. A worker that dies between sampling and publishing publishes the
// same event after its restart, and does not sample again.
//
// Handler (handler.go) puts an outbox in front of a stage's handler and checks
// the hash of the cause. Outbox (outbox.go) is the store: a directory of
// segment files. Records are appended to the newest segment, one encoded
// events.Message each, and the oldest segments are deleted as a whole. The
// number of messages and their bytes are bounded. An index by event ID is kept
// in memory.
//
// The package must not know the payload of any event.
//
// Start reading at handler.go. segment.go has the format of a file, record.go
// the format of a message; FORMAT.md describes both.
package outbox
