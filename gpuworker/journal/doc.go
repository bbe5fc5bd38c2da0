// Package journal keeps what a worker has sampled until it is certainly on the
// bus, so that a group delivered again after a crash is published again and
// never sampled again.
//
// It owns a Badger directory of encoded events.Message values keyed by event
// id, oldest dropped first, bounded in count and bytes. It must not know what
// an event says.
//
// Start reading at journal.go; record.go has the format of a value.
package journal
