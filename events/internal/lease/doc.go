// Package lease implements leases over a register: one record that is replaced
// by compare-and-set and of which all clients see the same versions in the same
// order. It knows no bus; natsbus and kafkabus each implement Register.
//
// An owner replaces its record every third of its TTL. A client that wants the
// lease replaces the record after it has seen no change for a whole TTL. That
// fails if the owner has renewed meanwhile, because the record is another
// version then. An owner counts its TTL from before it sent its last record, a
// waiting client from after it has seen it: so an owner stops confirming before
// another takes over. Clocks must run equally fast, but need not agree.
//
// An owner that cannot confirm has not lost the lease yet. While no other client
// has replaced the record it still is the owner, however long it was stopped or
// without a bus, and its next renewal proves it.
//
// Start reading at Take.
package lease
