//go:build race

package qwen2

// raceEnabled: the race detector allocates on its own account.
const raceEnabled = true
