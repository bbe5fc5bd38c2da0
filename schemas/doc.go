// Package schemas holds one JSON Schema (draft 2020-12) per event type and
// version, embedded, and checks payloads against them.
//
// The files are generated from the Go types of package events (go generate
// ./events); a test keeps them equal. A schema of an older version is never
// removed or changed: it documents what old logs hold.
//
// A payload is checked in its generic form, as a tap sees it: a map decoded
// from msgpack, with packed binary as base64 strings. The package must not
// know the Go types, the bus or the codec; it imports nothing of this module.
package schemas
