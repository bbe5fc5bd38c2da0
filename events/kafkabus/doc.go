// Package kafkabus carries events over Apache Kafka.
//
// Payloads lie in one topic per event type, shared by all runs:
//
//	codea1.<type>            key = group, CloudEvents headers ce_...
//
// Kafka orders nothing across partitions, knows no message that is redelivered
// alone, and kafka-go has no idempotent producer. A second kind of topic, of
// one partition, supplies all three: the journal of a run,
//
//	codea1.journal.<run>     one note per record, JSON
//
// A note says where the payload of an event lies, or what a member of a set of
// consumers did with one: claimed it, holds it longer, finished it, gave it
// back, or gave up on it. The run's order is that of its event notes; the first note of a
// type and group counts and later ones are nothing, however late they come. What a set has
// claimed and finished is a fold over the same notes (ledger.go), so every
// process comes to the same answer and none has to lead. A claim names the turn
// of the message that it saw; of two claims on one turn the first in the
// journal wins. Leases are timed by the member who would take over, on its own
// clock and from the moment it saw the last note: clocks need not agree.
//
// This replaces Kafka's consumer groups. A group hands out partitions, not
// messages: a member that takes minutes for a message would hold up those
// behind it, a limit for the whole set or a count of attempts could not be
// kept, and every member that joins or leaves stops the others. What is lost
// with them: tools that show the lag of groups see nothing here (events.Bus.Lag
// does), and the brokers balance nothing.
//
// There is no topic for retries or for dead letters either. A message that is
// to be tried again, or that a set gave up on, is where it was; a note says so
// and why, and another note makes it one that was never claimed.
//
// The price is that each process reads and remembers the journals of the runs
// it works for: about 150 bytes a note on the wire and 100 bytes an event in
// memory, from the start of the run when it connects. A run of 180 steps of 16
// groups has some 46,000 notes, which are read in a fifth of a second of one
// core (BenchmarkReplay): too little for snapshots of the journal to be worth
// having. Payloads are read only by who needs them. Topics keep their records
// for ever; to forget a run, delete its journal and let the operator's
// retention have the payloads.
//
// The leases of a run lie in a third kind of topic, codea1.lease.<run>, in
// which owners renew by compare-and-set: a record counts when it names the
// offset of the one that it replaces. Three owners with a TTL of 10 s write some
// 20 MB a day, which only who wants a lease reads.
//
// The package must not know what an event says, which stages exist, or what
// becomes of a message after it is acknowledged.
//
// Start reading at Bus and Connect, then note.go and ledger.go for the rules,
// tail.go and journal.go for how they are followed, publish.go, consume.go,
// read.go, deadletter.go and lease.go.
// testdata/broker.sh runs the tests against a real broker.
package kafkabus
