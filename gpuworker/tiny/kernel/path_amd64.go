package kernel

import "golang.org/x/sys/cpu"

//go:generate go -C internal/asm run . -out ../../asm_amd64.s -stubs ../../asm_amd64.go -pkg kernel

// vectorPaths returns the assembly paths that this machine supports, best first.
// The flags of AVX2 and AVX-512 are set only if the operating system saves their
// registers.
func vectorPaths() []*path {
	var paths []*path
	fma := cpu.X86.HasAVX2 && cpu.X86.HasFMA
	if fma && cpu.X86.HasAVX512F {
		paths = append(paths, &avx512Path)
	}
	if fma {
		paths = append(paths, &avx2Path)
	}
	return paths
}

var avx2Path = path{
	name:            "avx2",
	tall:            tile{rows: 6, panels: 1, run: tileTallAVX2},
	wide:            tile{rows: 3, panels: 2, run: tileWideAVX2},
	dot:             dotAVX2,
	dot3:            dot3AVX2,
	dotRows:         dotRowsAVX2,
	axpy:            axpyAVX2,
	axpyRows:        axpyRowsAVX2,
	maximum:         maximumAVX2,
	expSum:          expSumAVX2,
	scale:           scaleAVX2,
	softmaxBackward: softmaxBackwardAVX2,
	swiglu:          swigluAVX2,
	swigluBackward:  swigluBackwardAVX2,
	scaleMul:        scaleMulAVX2,
	rmsBackward:     rmsBackwardAVX2,
	adamw:           adamwAVX2,
}

var avx512Path = path{
	name:            "avx512",
	tall:            tile{rows: 12, panels: 2, run: tileTallAVX512},
	wide:            tile{rows: 6, panels: 4, run: tileWideAVX512},
	dot:             dotAVX512,
	dot3:            dot3AVX512,
	dotRows:         dotRowsAVX512,
	axpy:            axpyAVX512,
	axpyRows:        axpyRowsAVX512,
	maximum:         maximumAVX512,
	expSum:          expSumAVX512,
	scale:           scaleAVX512,
	softmaxBackward: softmaxBackwardAVX512,
	swiglu:          swigluAVX512,
	swigluBackward:  swigluBackwardAVX512,
	scaleMul:        scaleMulAVX512,
	rmsBackward:     rmsBackwardAVX512,
	adamw:           adamwAVX512,
}
