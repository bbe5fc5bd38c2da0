package curriculum

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"codea1/events"
)

// order maps every step and slot to a problem.
type order struct {
	problems int
	perStep  int
	seed     uint64

	epoch       int   // of the permutation
	permutation []int // nil before the first use
}

// at returns the epoch, from 0, of a step, counted from 1, and the index of the
// problem posed in the given slot. Within a step no problem is posed twice.
func (o *order) at(step, slot int) (epoch, problem int) {
	perEpoch := o.problems / o.perStep
	epoch = (step - 1) / perEpoch
	if o.permutation == nil || o.epoch != epoch {
		o.epoch, o.permutation = epoch, permutation(o.seed, epoch, o.problems)
	}
	return epoch, o.permutation[(step-1)%perEpoch*o.perStep+slot]
}

func permutation(seed uint64, epoch, n int) []int {
	return rand.New(rand.NewPCG(seed, uint64(epoch))).Perm(n)
}

// groupSeed is the root of a group's sampling seeds.
func groupSeed(seed uint64, group string) uint64 {
	b := binary.LittleEndian.AppendUint64(nil, seed)
	sum := sha256.Sum256(append(b, group...))
	return binary.LittleEndian.Uint64(sum[:])
}

// Subset returns n of the problems, picked by the seed, in their original order.
// A run over fewer problems poses each of them again sooner.
func Subset(problems []events.Problem, n int, seed uint64) []events.Problem {
	// No epoch has this number, so the pick does not depend on a shuffle.
	const pick = -1
	picked := permutation(seed, pick, len(problems))[:n]
	slices.Sort(picked)
	subset := make([]events.Problem, n)
	for i, p := range picked {
		subset[i] = problems[p]
	}
	return subset
}
