// Package fork makes runs from the events of other runs: a fork that shares the
// beginning of a run (Run, Copy), a log rebuilt from a log or a bus (Rebuild,
// RebuildFromBus), a bus filled from a log (Seed, RestoreBus), and policy versions
// trained again from a log (Retrain).
//
// The package knows no bus, no checkpoint format, no configuration and no engine:
// Host and Retrainer provide them.
//
// Start reading at run.go for a fork, then rename.go for the events of a fork
// and seed.go for its bus.
package fork
