// Package natsbus carries events over NATS JetStream, and runs a NATS server
// inside the process for a run that needs no other.
//
// A run is one stream, codea1-<run>, and an event is one subject of it:
//
//	codea1.<run>.<type>.<group>      codea1.r1.problem.posed.s000001-q0003
//
// A subject holds at most one message, for ever. That is what makes publishing
// idempotent without a window: the server refuses a second message on a
// subject, and the bus asks whether the first one is the same event. Workers
// are durable pull consumers; readers are ephemeral ones that acknowledge
// nothing and start again after the last message they returned.
//
// The package must not know what an event says, which stages exist, or what
// becomes of a message after it is acknowledged.
//
// Start reading at Bus and Connect, then publish.go for the ordering and
// deduplication, consume.go and read.go for the two kinds of consumer, and
// server.go for the embedded server.
package natsbus
