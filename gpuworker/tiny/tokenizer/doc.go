// Package tokenizer is the byte-level BPE of Qwen2: it reads and writes Hugging
// Face tokenizer.json, encodes and decodes, and trains new vocabularies.
//
// Encoding is that of the Hugging Face library, id for id: added tokens are cut
// out first, the text between them is brought to NFC, split by Qwen2's pattern,
// and merged by rank. It is total: any string, valid UTF-8 or not, becomes ids,
// and Decode gives its NFC form back byte for byte.
//
// The package knows nothing of models, checkpoints or chat templates.
//
// Start reading at tokenizer.go; split.go is the pre-tokenizer, merge.go the
// merge loop, file.go the JSON format, train.go the trainer.
package tokenizer
