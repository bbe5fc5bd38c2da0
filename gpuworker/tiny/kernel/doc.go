// Package kernel computes the float32 inner loops of a small decoder on the
// CPU: matrix products, attention's dot products and weighted sums, softmax,
// SwiGLU, RMSNorm and AdamW.
//
// It owns only arithmetic. It must not know models. It starts no goroutine and does
// no I/O: the callers divide work among goroutines and own all buffers. It does
// not allocate after its internal pools are filled.
//
// # Paths
//
// Every function exists in scalar Go, in AVX2+FMA and AVX-512 assembly for amd64,
// and in NEON assembly for arm64. At start the package chooses the best path that
// the machine and its operating system support. The environment variable
// CODEA1_KERNEL (scalar, avx2, avx512 or neon) sets another one. [Check] returns an
// error if that path cannot be used.
//
// # Determinism
//
// Results depend bit for bit only on the values of the arguments:
//
//   - A row of [MatMul]'s C depends only on that row of A and on B, not on the
//     number of rows, the other rows or strides. Each element is one chain
//     c = c + a[p]*b[p] over ascending p, in every tile shape.
//   - [MatMulTA] has the same chain over ascending m. A division of its output by
//     rows or columns therefore changes no bit; a division of m does.
//   - Vector functions do not depend on offset or alignment. [DotRows] and
//     [AxpyRows] equal repeated calls of [Dot] and [Axpy].
//   - AVX2, AVX-512 and NEON give the same bits: reductions use the same 16 or 32
//     virtual lanes, and the same products are fused. The scalar path rounds
//     products before it adds them, so its last bits differ. It gives the same
//     bits on every architecture: an explicit conversion of each product prevents
//     the compiler from fusing it into a multiply-add. (Package math does not
//     guarantee this for the logarithm in [SoftmaxInPlace] and the powers in
//     [AdamW].)
//
// Start reading at matmul.go. The choice of a path is in path.go; internal/asm
// generates the assembly for amd64, internal/neon that for arm64.
package kernel
