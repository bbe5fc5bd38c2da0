// Package enginetest is the conformance suite of engines: Run checks that an
// implementation keeps the contract of gpuworker.Sampler and gpuworker.Learner.
//
// It must not know any engine. The tests of each engine call Run.
//
// Start reading at conformance.go.
package enginetest
