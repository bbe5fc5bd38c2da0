// Package qwen2 computes the Qwen2 decoder: RMSNorm, rotary positions,
// grouped-query attention with biased projections, SwiGLU, and tied or separate
// embeddings. It has three operations on one set of weights: a forward pass that
// scores responses, its backward pass, and a batched decoder with a key/value
// cache.
//
// Results depend only on the arguments. The numbers of a response depend bit for
// bit only on its prompt and itself, not on other responses of the pass or the
// batch: package kernel computes each row separately, and responses do not attend
// to each other. The package must not know tokenizers, files, losses or
// optimizers. It starts no goroutine, and it does not allocate when its buffers
// are large enough.
//
// Start reading at weights.go, then pass.go (forward), backward.go and
// decode.go. Shapes are row-major; R is the rows of a pass, H the hidden size.
package qwen2
