// Package enginetest holds what every engine is tested with: Run, the
// conformance suite of gpuworker.Sampler and gpuworker.Learner, and Bigram, a
// complete engine small enough to reason about, for tests of what stands
// around an engine.
//
// It must not know any other engine: an engine's own tests call Run.
//
// Start reading at conformance.go.
package enginetest
