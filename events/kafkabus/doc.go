// Package kafkabus is the events.Bus over Apache Kafka.
//
// Payloads are in one topic per event type, shared by all runs:
//
//	codea1.<type>            key = group, CloudEvents headers ce_...
//
// Kafka has no order across partitions and cannot redeliver a single message,
// and kafka-go has no idempotent producer. The control topic of a run, with one
// partition, supplies all three:
//
//	codea1.control.<run>     one change per record, JSON
//
// A change (change.go) says that an event is stored and where its payload is, or
// how a member of a worker set answered an event: it claimed it, extended the
// claim, finished it, gave it back, or gave up on it. The order of a run is the
// order of its event changes. The first one of a type and group counts; later
// ones are ignored. The ledger (ledger.go) folds the changes into the claimed
// and finished events of each worker set. All processes fold the same changes,
// so all have the same ledger and none must lead. A claim contains the turn of
// the event that its member saw. Of two claims with one turn, the first in the
// control topic wins. The member that wants to take over an event measures
// AckWait on its own clock, from the moment it read the last change of the
// event: clocks need not agree.
//
// # Why there are no Kafka consumer groups
//
// A consumer group assigns partitions, not messages. A member that takes minutes
// for one message would delay those behind it, a limit for the whole worker set
// and a count of deliveries could not be kept, and every member that joins or
// leaves stops the others. The price is that the brokers do not balance members.
//
// # The lag that other tools show
//
// Members of a worker set commit offsets to a consumer group without members
// (commit.go), so that tools which show lag see the worker set:
//
//	codea1.<run>.<set>
//
// The committed offset of a partition is that of the first payload of the run
// that the worker set has not finished; if all are finished, it is the offset
// after the last. A snoozed or retried event is not finished; a dead letter is.
// A retried event waits in the retry topic of the worker set, which has a
// committed offset too. Every process that consumes or has redelivered an event
// commits changed offsets every 5 s (Config.CommitInterval) and when it closes.
// A commit contains the control offset up to which its process had read. A
// process that had read less does not overwrite it; if two commits cross, the
// next one repairs the offset. Nothing depends on committed offsets: if the
// client may not commit them, or an operator resets them, the only effect is a
// line in the log.
//
// The lag that tools compute from it is an upper bound:
//
//   - All events behind an unfinished event count, finished or not. Bus.Lag
//     counts exactly.
//   - Runs share topics. Payloads of other runs are skipped. Those behind the
//     last payload of this run are skipped one commit later, because a change of
//     this run may still arrive (if it arrives later than that, the offset goes
//     back). Behind an unfinished event they count. After the end of a run, when
//     no process commits, the payloads of other runs make its lag grow. Brokers
//     forget such a group a week after its last commit
//     (offsets.retention.minutes).
//
// # Copies
//
// Two more kinds of topics have one partition each and are created with their
// first message. The message is copied there with its key, headers and payload:
//
//	codea1.retry.<run>.<set>  retried or redelivered events: codea1_set, and
//	                          codea1_deliveries of the first retry or
//	                          codea1_deadletter
//	codea1.dead.<run>         dead letters: codea1_set, codea1_deliveries,
//	                          codea1_error and codea1_deadletter
//
// An event with a copy in the retry topic is delivered from there until it is
// finished. It is copied once, also if it is retried again. The change that names
// the copy has the time from which it may be claimed. A copy in the dead letter
// topic is for taps and alerts only: the bus lists, shows and redelivers dead
// letters from the control topic and the original payload. codea1_deadletter is
// the ID for Bus.DeadLetter. A redelivery does not delete that copy.
//
// A copy is written before its change. A member that dies in between, and two
// members that give up on one event, leave an extra copy: ce_id identifies the
// event, and only a copy that a change names is delivered. If a topic cannot be
// written within 10 s (or half the time of the answer's context) or must not be
// created, the copy is skipped, and so are the copies of the next minute; the log
// says so. Then the event waits at its original place, and the committed offset
// stays there, or goes back there for a redelivered dead letter. If a retry topic
// is deleted, the originals are delivered.
//
// # Cost
//
// A process reads and remembers the control topics of its runs: about 150 bytes
// a change on the wire and 100 bytes an event in memory, from the start of the
// run. A run of 180 steps of 16 groups has 46,000 changes, which one core reads
// in a fifth of a second (BenchmarkReplay). Payloads are read only by those that
// consume or read them. Topics keep their records for ever; to delete a run,
// delete the topics that contain its name and leave the payloads to the
// retention of the operator.
//
// Leases are in the topic codea1.lease.<run>. Owners renew them by
// compare-and-set: a record counts if it names the offset of the record that it
// replaces. Three owners with a TTL of 10 s write about 20 MB a day, which only
// processes that want a lease read.
//
// The package must not know the content of an event, the stages, or the fate of
// a message after its acknowledgement.
//
// Start reading at Bus and Connect, then change.go and ledger.go for the rules,
// tail.go and control.go for the control topic, publish.go, consume.go, read.go,
// deadletter.go and lease.go; copies.go, offsets.go and commit.go are for other
// tools. testdata/broker.sh runs the tests against a real broker.
package kafkabus
