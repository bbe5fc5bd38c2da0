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
// back. The run's order is that of its event notes; the first note of a
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
// kept, and every member that joins or leaves stops the others.
//
// The price is that each process reads and remembers the journals of the runs
// it works for: about 150 bytes a note on the wire and 100 bytes an event in
// memory, from the start of the run when it connects. Payloads are read only by
// who needs them. Topics keep their records for ever; to forget a run, delete
// its journal and let the operator's retention have the payloads.
//
// The package must not know what an event says, which stages exist, or what
// becomes of a message after it is acknowledged.
//
// Start reading at Bus and Connect, then note.go and ledger.go for the rules,
// journal.go for how they are followed, publish.go, consume.go and read.go.
// testdata/broker.sh runs the tests against a real broker.
package kafkabus
