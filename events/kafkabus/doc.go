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
// with them is that the brokers balance.
//
// Tools that show the lag of groups see a set all the same, as the group
//
//	codea1.<run>.<set>       without members
//
// to which the members of the set commit what the journal says (commit.go):
// for each partition that it consumes from, the offset of the first payload of
// the run that the set has not finished, and where it has finished all, that
// after the last. Held and given back at once is not finished; given up is. What
// is put off waits in the set's retry topic, where the group has an offset of the
// same kind. Every process that consumes, or has redelivered, looks every 5 s
// (Config.CommitInterval) and when it closes, and commits what has changed. A commit carries the offset in
// the journal up to which its process had read, and one that had read less
// leaves it alone; should two cross, the next look repairs it. Nothing in this
// package depends on these offsets: without permission to commit them, or when
// an operator resets them, a line in the log is all that happens.
//
// What tools call lag, from there to the end of the partition, is an upper bound:
//
//   - Behind one message that takes long all later ones count, done or not.
//     Bus.Lag counts exactly.
//   - Topics are shared by runs, and so are their ends. Payloads of other runs
//     are passed over; those behind the last of this run's one look later than
//     they came, lest one be passed over whose note is on its way. (Should its
//     note take longer than that, the offset goes back.) Behind one that waits,
//     they count. And where no process is left to look, as after the end of a
//     run, what other runs publish makes its lag grow from 0. The brokers forget
//     such a group a week after its last commit (offsets.retention.minutes).
//
// Two more kinds of topic, of one partition each, are made by the first message
// that needs them. It is copied there, with its key, headers and payload:
//
//	codea1.retry.<run>.<set>  put off, or redelivered: codea1_set, _deliveries
//	                          of the first time, or _deadletter
//	codea1.dead.<run>         given up: codea1_set, _deliveries, _error and
//	                          _deadletter
//
// From the retry topic the message is delivered until it is finished or given
// up; it is copied there once, however often it is put off. When it may be
// claimed again is in the note that names the copy. In the topic of dead letters
// the copy is for taps and alerts; letters are listed, shown and redelivered from
// the journal and the original. codea1_deadletter is the name under which
// Bus.DeadLetter finds one, and a redelivery does not take its copy back.
//
// A copy is written before its note. A member that dies in between, or two that
// give up on the same message, leave a copy too many: ce_id says which event it
// is, and only a copy that a note names is delivered. A topic that cannot be
// written for 10 s, or half of the time that the answer has, or must not be
// created, costs the copy, those of the next minute and a line in the log: then
// the message waits where it was published, and the group stands at it there,
// gone back for a dead letter that is redelivered. Where a retry topic was
// deleted, what was published is delivered.
//
// The price is that each process reads and remembers the journals of the runs
// it works for: about 150 bytes a note on the wire and 100 bytes an event in
// memory, from the start of the run when it connects. A run of 180 steps of 16
// groups has some 46,000 notes, which are read in a fifth of a second of one
// core (BenchmarkReplay): too little for snapshots of the journal to be worth
// having. Payloads are read only by who needs them. Topics keep their records
// for ever; to forget a run, delete the topics that bear its name and let the
// operator's retention have the payloads.
//
// The leases of a run lie in a topic codea1.lease.<run>, in which owners renew by compare-and-set: a record counts when it names the
// offset of the one that it replaces. Three owners with a TTL of 10 s write some
// 20 MB a day, which only who wants a lease reads.
//
// The package must not know what an event says, which stages exist, or what
// becomes of a message after it is acknowledged.
//
// Start reading at Bus and Connect, then note.go and ledger.go for the rules,
// tail.go and journal.go for how they are followed, publish.go, consume.go,
// read.go, deadletter.go and lease.go; copies.go, mark.go and commit.go for what
// other tools see.
// testdata/broker.sh runs the tests against a real broker.
package kafkabus
