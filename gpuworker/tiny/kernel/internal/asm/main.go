// Command asm generates the amd64 assembly of package kernel. Run it with
// `go generate ./gpuworker/tiny/kernel`.
//
// Every function is written once, in terms of an isa, and generated for AVX2
// and for AVX-512. Elementwise code works on 16 elements at a time and the rest
// under a mask, with the same instructions; reductions keep the same virtual
// lanes in both sets. That is why both give the same bits.
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
