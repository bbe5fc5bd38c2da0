// Package problems owns problem sets: the built-in ones and files in JSONL and
// parquet. It also makes the text that the shipped checkpoints of the embedded
// engine are trained on.
//
// It must not know how problems are scheduled, sampled or executed. The Checker
// interface checks a ground truth; package main joins it to the sandbox.
//
// The built-in sets are data in builtin (372 KB). The Python program in
// generator makes them with `go generate`; it also writes the training text.
// Built-in problems are short functions over lists, strings and numbers. They
// are composed from parts such as a source, a filter, a map and a reducer, each
// with words for the question and a piece of code. A small model that has seen
// the parts can solve compositions that it has not seen. Held-out problems are
// exactly that.
//
// Start reading at Problem, then Load, which reads any set. In generator, start
// at sets.py, then families_numbers.py for how one family is built.
package problems
