// Package natsbus is the events.Bus over NATS JetStream. It also runs the NATS
// server inside the process of a run that needs no other.
//
// A run is one stream, codea1-<run>. An event is stored on a subject of its own,
// and so are a dead letter and its redelivery:
//
//	codea1.<run>.<type>.<group>                 codea1.r1.problem.posed.s000001-q0003
//	codea1.<run>.again.<type>.<group>.<n>       if a message that is no event has that subject
//	codea1.<run>.dead.<set>.<event>.<round>     codea1.r1.dead.execution.3f...a7.1
//	codea1.<run>.retry.<set>.<event>.<round>    codea1.r1.retry.execution.3f...a7.1
//
// A subject has at most one message, for ever. This makes publishing idempotent
// without a time window: the server refuses a second message on a subject, and
// the bus checks whether the first one is the same event. Workers are durable pull
// consumers, which also get the redeliveries of their worker set. Readers are
// ephemeral consumers without acknowledgements that start again after the last
// message they returned.
//
// A full stream refuses new messages and deletes nothing; publishers wait. In a
// cluster a run is stored on Config.Replicas nodes and continues while more than
// half of them work; a publish waits until a new leader is elected.
//
// The leases of a run are the keys of the bucket codea1-<run>, replaced by
// compare-and-set (events/internal/lease).
//
// The embedded server has two logins, with passwords in its store directory:
// PipelineUser for the stages of the run, and TapUser, which only subscribes to
// the run's events. A client without a login can do nothing. permissions.conf has a
// login for each stage on another server.
//
// The package must not know the content of an event, the stages, or the fate of
// a message after its acknowledgement.
//
// Start reading at Bus and Connect, then publish.go for order and
// deduplication, consume.go and read.go for the two kinds of consumers,
// deadletter.go, lease.go, server.go for the embedded server and login.go for its
// logins.
package natsbus
