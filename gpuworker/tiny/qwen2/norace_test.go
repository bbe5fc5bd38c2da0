//go:build !race

package qwen2

const raceEnabled = false
