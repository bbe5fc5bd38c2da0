// Package tokenizer is the byte-level BPE of Qwen2. It reads and writes Hugging
// Face's tokenizer.json, encodes and decodes text, and trains new vocabularies.
//
// Encoding gives the ids of the Hugging Face library for text without special
// tokens: the text is normalized to NFC, split by Qwen2's pattern, and merged by
// rank. Every string can be encoded, valid UTF-8 or not, and Decode returns its
// NFC form byte for byte.
//
// The package must not know models, checkpoints or chat templates.
//
// Start reading at tokenizer.go; split.go is the pre-tokenizer, merge.go the
// merge loop, file.go the JSON format, train.go the trainer.
package tokenizer
