package gpuworker

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"codea1/events"
)

// SampleSeed returns the seed of one completion: the first eight bytes of a
// SHA-256 over the completion's name. A redelivered group thus has the same seeds.
// suite is 0 for an answer.
func SampleSeed(plan *events.Plan, group string, role events.Role, answer, suite int) uint64 {
	// Group names have no '/', so each completion has a different input.
	sum := sha256.Sum256(fmt.Appendf(nil, "%d/%s/%s/%d/%d", plan.Seed, group, role, answer, suite))
	return binary.BigEndian.Uint64(sum[:])
}
