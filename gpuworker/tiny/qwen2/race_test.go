//go:build race

package qwen2

// raceEnabled is true in builds with the race detector, which allocates.
const raceEnabled = true
