// Package schemas holds one JSON Schema (draft 2020-12) per event type and
// version, embedded.
//
// The files are generated from the Go types of package events (go generate
// ./events), and a test compares them. A released schema is never removed or
// changed: it documents the events of existing logs.
//
// A bin "in planes" holds whole numbers of four bytes: the lowest byte of every
// number, then the second byte of every number, the third, the highest. With n
// numbers, number i is the bytes i, n+i, 2n+i and 3n+i, lowest first; in Python
//
//	[int.from_bytes(bin[i::n], "little", signed=True) for i in range(n)]
//
// The tests of package events check payloads in their generic form: a map decoded
// from msgpack, with packed binary as base64 strings. The package must not know the
// Go types, the bus or the codec; it imports nothing of this module.
package schemas
