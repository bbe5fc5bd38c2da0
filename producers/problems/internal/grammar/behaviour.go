package grammar

import (
	py "codea1/producers/problems/internal/minipy"
)

// behaviour is a function's results on the probes of a domain, each as a hash
// that two results share when Python's == holds between them.
type behaviour []uint64

// raised stands for any exception.
const raised = 1

func behaviourOf(f *py.Func, d *Domain) behaviour {
	results := make(behaviour, len(d.Probes))
	var key []byte
	for i, probe := range d.Probes {
		results[i], key = resultOf(f, probe, key)
	}
	return results
}

// resultOf hashes one result; key is scratch space, returned to be used again.
func resultOf(f *py.Func, input []py.Value, key []byte) (uint64, []byte) {
	value, err := f.Call(input...)
	if err != nil {
		return raised, key
	}
	key = py.AppendKey(key[:0], value)
	return hashOf(key), key
}

// fingerprint condenses a behaviour; domains with the same inputs share it.
func (b behaviour) fingerprint(d *Domain) uint64 {
	fp := hashOf([]byte(d.Params[0] + d.Name))
	for _, result := range b {
		fp = (fp ^ result) * hashPrime
	}
	return fp
}

// telling reports whether the results vary and none is an exception: no single
// result on more than commonest percent of the probes.
func (b behaviour) telling() bool {
	counts := make(map[uint64]int, len(b))
	for _, result := range b {
		counts[result]++
		if result == raised || counts[result]*100 > commonest*len(b) {
			return false
		}
	}
	return true
}

// sharedBy reports whether the function gives the same results.
func (b behaviour) sharedBy(f *py.Func, d *Domain) bool {
	var key []byte
	for i, probe := range d.Probes {
		var result uint64
		if result, key = resultOf(f, probe, key); result != b[i] {
			return false
		}
	}
	return true
}

const hashPrime = 0x100000001b3

// hashOf is FNV-1a. It decides which problems there are, so it must never change.
func hashOf(text []byte) uint64 {
	h := uint64(0xcbf29ce484222325)
	for _, c := range text {
		h = (h ^ uint64(c)) * hashPrime
	}
	return h
}
