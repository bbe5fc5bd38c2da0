package kernel

// vectorPaths lists the assembly paths this machine can run. Every processor
// that Go runs on has NEON.
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
