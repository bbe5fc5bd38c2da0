//go:build race

package tiny

// raceEnabled is true in builds with the race detector, which allocates.
const raceEnabled = true
