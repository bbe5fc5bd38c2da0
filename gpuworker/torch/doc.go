// Package torch is the engine for Hugging Face models on GPUs, or slowly on the
// CPU. Engine implements gpuworker.Sampler and gpuworker.Learner. The models are
// computed by the Python package codea1_torch (python/), which Engine runs as a
// child process.
//
// It owns the child: its start and its end, the frames between both processes
// (PROTOCOL.md), cancellation, heartbeats, log lines, and the repetition of work
// after the child died. It must not know groups or rewards, and no event except
// the Completion that it returns. It must not know how tokens are computed.
//
// One invariant holds: a child that dies changes no result. A sampling is
// repeated by the next child. Weights in training are lost with the child; the
// next call of the learner returns gpuworker.ErrStateLost until a checkpoint is
// loaded.
//
// Start reading at engine.go; then child.go for the process and frame.go for the
// bytes.
package torch
