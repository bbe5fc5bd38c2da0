//go:build race

package tiny

// raceEnabled: the race detector allocates on its own account.
const raceEnabled = true
