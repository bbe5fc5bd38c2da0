// Package peak runs fused multiply-adds on registers alone, as many as a core
// can start: what no kernel can surpass, for benchmarks to compare with.
package peak

// Loop runs a number of rounds, each of FLOPs floating-point operations.
type Loop struct {
	Run   func(rounds int)
	FLOPs int
}
