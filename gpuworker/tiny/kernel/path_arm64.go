package kernel

// vectorPaths returns the assembly paths that this machine supports. Go runs only on
// processors with NEON.
func vectorPaths() []*path { return []*path{&neonPath} }

var neonPath = path{
	name:            "neon",
	tall:            tile{rows: 6, panels: 1, run: tileTallNEON},
	wide:            tile{rows: 3, panels: 2, run: tileWideNEON},
	dot:             dotNEON,
	dot3:            dot3NEON,
	dotRows:         dotRowsNEON,
	axpy:            axpyNEON,
	axpyRows:        axpyRowsNEON,
	maximum:         maximumNEON,
	expSum:          expSumNEON,
	scale:           scaleNEON,
	softmaxBackward: softmaxBackwardNEON,
	swiglu:          swigluNEON,
	swigluBackward:  swigluBackwardNEON,
	scaleMul:        scaleMulNEON,
	rmsBackward:     rmsBackwardNEON,
	adamw:           adamwNEON,
}
