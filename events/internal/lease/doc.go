// Package lease keeps leases over a register: one record that is replaced by
// compare-and-set and of which everybody sees the same versions in the same
// order. It knows no bus; natsbus and kafkabus each bring a register.
//
// An owner replaces its record every third of its TTL. Who wants the lease
// watches for a whole TTL that the record stays as it is, and then replaces it
// itself. That cannot succeed when the owner was in time: its record is another
// one by then. And an owner counts its TTL from before it sent its last record,
// a watcher from after it has seen it: the owner is the first to doubt. Clocks
// have to run equally fast, and need not agree.
//
// Doubt is no loss. While nobody has replaced the record the owner still is the
// owner, however long it was stopped or the bus away, and its next renewal
// proves it.
//
// Start reading at Take.
package lease
