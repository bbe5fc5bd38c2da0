// Package events is the vocabulary of codea1: what can happen in a run, how it
// is written on the wire, and the Bus every stage talks through.
//
// An Event is an Envelope and a Payload. Encode turns it into a Message, the
// form a Bus carries and the log keeps; Message.Decode turns it back. Payloads
// are msgpack maps with short readable keys, zstd above ZstdThreshold. Sampled
// ones travel by column (columns.go), with token ids and log-probs packed
// (packed.go), executed ones leave out what stands in the test itself
// (executed_short.go); what each is on the wire stands in schemas. Envelopes
// travel as CloudEvents 1.0 binary-mode headers. What a process has encoded last
// it need not take apart again (recent.go).
//
// The unit of work is a group: one question with its M answers and M x N test
// suites. Each stage turns one event of a group into the next, so an ID can be
// derived from its cause (DeriveID) and a redelivery repeats nothing.
//
// The package imports nothing of this module but schemas. It must not know
// which bus, engine, sandbox or store is in use, and does no I/O.
//
// Start reading at event.go, then payload.go for the list of payloads, then
// bus.go for the delivery guarantees.
package events
