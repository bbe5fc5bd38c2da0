// Package problems owns question sets: the built-in ones, made from a grammar
// of small Python functions, and files in JSONL and parquet. It also makes the
// text that the shipped checkpoints of the embedded engine are trained on.
//
// It must not know how problems are scheduled, sampled or executed: what checks
// a ground truth is the Checker interface, joined in main.
//
// Start reading at Problem, then Load, which reads any set; Builtin and
// internal/grammar hold the built-in ones, Corpus the training text.
package problems
