// Package safetensors reads and writes Hugging Face's safetensors files as
// float32. It reads bf16, f16 and f32, in one file or in shards with an index, and
// writes bf16 or f32.
//
// A file is a little-endian uint64 length, a JSON header of that length with the
// dtype, shape and byte range of each tensor, and the data. The package checks
// all of it: ranges must cover the data without holes or overlap and must match
// the shapes. It must not know models.
//
// Start reading at header.go.
package safetensors
