// Package checkpoint keeps the checkpoints of one role's trainer on disk: a
// directory per policy version with weights, optimizer state and the trainer's
// position on the bus.
//
// It owns the names and the layout of these directories (FORMAT.md), their
// integrity, their retention and their file URIs. It must not know how weights
// are computed: the caller fills a directory and reads it.
//
// A directory that has a version's name is complete. Each operation prepares a
// directory under a temporary name and renames it, so a process that is killed
// leaves no partial version.
//
// Start reading at folder.go.
package checkpoint
