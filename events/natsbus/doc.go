// Package natsbus carries events over NATS JetStream, and runs a NATS server
// inside the process for a run that needs no other.
//
// A run is one stream, codea1-<run>, and an event is one subject of it. So is a
// dead letter, and its redelivery:
//
//	codea1.<run>.<type>.<group>                 codea1.r1.problem.posed.s000001-q0003
//	codea1.<run>.dead.<set>.<event>.<round>     codea1.r1.dead.execution.3f...a7.1
//	codea1.<run>.retry.<set>.<event>.<round>    codea1.r1.retry.execution.3f...a7.1
//
// A subject holds at most one message, for ever. That is what makes publishing
// idempotent without a window: the server refuses a second message on a
// subject, and the bus asks whether the first one is the same event. The
// Nats-Msg-Id of a message is its event's ID, for others who look; nothing here
// rests on it. Workers are durable pull consumers, which also ask for the
// redeliveries of their set; readers are ephemeral ones that acknowledge
// nothing and start again after the last message they returned.
//
// A full stream refuses what is new (events.ErrFull) and forgets nothing. In a
// cluster a run lies on Config.Replicas nodes and goes on as long as more than
// half of them are there; a publish waits out the election of a new leader.
//
// The leases of a run are the keys of the bucket codea1-<run>, replaced by
// compare-and-set (events/internal/lease).
//
// The package must not know what an event says, which stages exist, or what
// becomes of a message after it is acknowledged.
//
// Start reading at Bus and Connect, then publish.go for the ordering and
// deduplication, consume.go and read.go for the two kinds of consumer,
// deadletter.go, lease.go, and server.go for the embedded server.
package natsbus
