package peak

// Of returns the loop on a kernel path's registers; false for scalar.
func Of(path string) (Loop, bool) {
	if path == "neon" {
		return Loop{fmaNEON, 24 * 4 * 2}, true
	}
	return Loop{}, false
}

// fmaNEON runs 24 chains of 4 lanes.
//
//go:noescape
func fmaNEON(rounds int)
