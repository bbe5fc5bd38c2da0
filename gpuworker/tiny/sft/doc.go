// Package sft is supervised fine-tuning with the embedded engine: the train-sft
// command, which trains a checkpoint on written responses.
//
// It owns the format of the training data (rows.go), the order of the batches
// and the schedule of the learning rate (run.go). The engine (package tiny)
// computes the updates. It must not know runs, roles or events.
//
// Start reading at command.go.
package sft
