// Package journal keeps what a worker has sampled until it is certainly on the
// bus, so that a group delivered again after a crash is published again and
// never sampled again.
//
// It owns a directory of segments: files that records, one encoded
// events.Message each, are appended to and that are deleted as a whole, oldest
// first. The number of messages and their bytes are bounded. Where they lie is
// kept in memory, by event id. It must not know what an event says.
//
// Start reading at journal.go; segment.go has the format of a file, record.go
// that of a message.
package journal
