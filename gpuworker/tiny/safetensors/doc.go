// Package safetensors reads and writes Hugging Face's safetensors files as
// float32: bf16, f16 and f32 in, bf16 or f32 out, alone or in shards under an
// index.
//
// A file is a little-endian uint64 length, that many bytes of JSON that name
// each tensor's dtype, shape and byte range, and the data. The package trusts
// none of it: ranges must cover the data exactly, without holes or overlap, and
// agree with the shapes. It knows nothing of models.
//
// Start reading at header.go.
package safetensors
