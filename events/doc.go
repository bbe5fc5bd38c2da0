// Package events defines the events of a run, their encoding, the stages that
// publish and consume them, and the interface of the bus.
//
// An Event is an Envelope and a Payload. Encode turns it into a Message, which a
// Bus carries and the log stores; Message.Decode turns it back. Payloads are
// msgpack maps with short readable keys, compressed with zstd from ZstdThreshold
// on. Envelopes are CloudEvents 1.0 binary-mode headers. Package schemas has a
// JSON Schema for each payload.
//
// The large payloads have wire forms of their own. Sampled ones are written by
// column (columns.go), with token ids and log-probs packed (packed.go). Executed
// ones leave out the parts of a test that its source contains
// (executed_short.go). The payloads of a group are coded without reflection
// (coder.go). Payloads that this process encoded recently need no decompression
// (recent.go).
//
// The unit of work is a group: one problem with its M answers and M x N suites.
// Each stage turns one event of a group into the next. The ID of an event derives
// from its cause (DeriveID), so a redelivery publishes nothing new.
//
// The package imports nothing of this module but schemas. It must not know the
// bus, engine, sandbox or store in use, and does no I/O.
//
// Start reading at event.go, then topology.go for the stages, payload.go for the
// list of payloads and bus.go for the delivery guarantees.
package events
