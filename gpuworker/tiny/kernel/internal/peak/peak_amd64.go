package peak

// Of returns the loop on a kernel path's registers, which the machine must
// have; false for scalar.
func Of(path string) (Loop, bool) {
	switch path {
	case "avx512":
		return Loop{fmaAVX512, 24 * 16 * 2}, true
	case "avx2":
		return Loop{fmaAVX2, 12 * 8 * 2}, true
	}
	return Loop{}, false
}

// fmaAVX512 runs 24 chains of 16 lanes.
//
//go:noescape
func fmaAVX512(rounds int)

// fmaAVX2 runs 12 chains of 8 lanes.
//
//go:noescape
func fmaAVX2(rounds int)
