// Command asm generates the amd64 assembly of package kernel. Run it with
// `go generate ./gpuworker/tiny/kernel`.
//
// Every function is written once with an isa and generated for AVX2 and AVX-512.
// Elementwise code processes 16 elements at a time and the remainder under a mask
// with the same instructions. Reductions have the same virtual lanes in both sets.
// Therefore both give the same bits.
package main

import (
	. "github.com/mmcloughlin/avo/build"
)

func main() {
	for _, s := range []isa{avx2, avx512} {
		s.tiles()
		s.dots()
		s.axpys()
		s.softmax()
		s.swiglu()
		s.rmsnorm()
		s.adamw()
	}
	Generate()
}
