//go:build !race

package tiny

const raceEnabled = false
