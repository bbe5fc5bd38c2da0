// Package kernel computes the float32 inner loops of a small decoder on the
// CPU: matrix products, attention's dot products and weighted sums, softmax,
// SwiGLU, RMSNorm and AdamW.
//
// It owns arithmetic only. It knows no model, no tensor shape beyond the
// slices it is handed, starts no goroutine and does no I/O: callers shard work
// over goroutines and own every buffer. Nothing allocates once the internal
// scratch pools are warm.
//
// # Paths
//
// Every function exists as scalar Go, as AVX2+FMA and AVX-512 assembly on amd64,
// and as NEON assembly on arm64. The best path the machine and its operating
// system support is taken at start; the environment variable CODEA1_KERNEL
// (scalar, avx2, avx512 or neon) forces one. [Check] reports a choice that
// cannot be honoured.
//
// # Determinism
//
// Results depend on values alone, bit for bit:
//
//   - A row of [MatMul]'s C depends on that row of A and on B: never on the
//     number of rows, on the other rows, or on strides. Each element is one
//     chain c = c + a[p]*b[p] over ascending p, in every tile shape.
//   - [MatMulTA] chains over ascending m likewise, so that sharding its output
//     by rows or by columns changes no bit (sharding over m does).
//   - Vector functions do not depend on offset or alignment. [DotRows] and
//     [AxpyRows] equal the calls of [Dot] and [Axpy] they stand for.
//   - AVX2, AVX-512 and NEON give the same bits as each other: reductions run
//     over the same 16 or 32 virtual lanes, and the same products are fused.
//     The scalar path rounds products before adding them, so it differs from
//     them in the last bits, but is itself the same on every architecture: each
//     product is converted explicitly, which forbids the compiler to fuse it
//     into a multiply-add. (Package math gives no such promise for the
//     logarithm in [SoftmaxInPlace] and the powers in [AdamW].)
//
// Start reading at matmul.go; path.go tells how a path is chosen, internal/asm
// generates the assembly for amd64 and internal/neon that for arm64.
package kernel
