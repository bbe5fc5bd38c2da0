// Package qwen2 computes the Qwen2 decoder: RMSNorm, rotary positions,
// grouped-query attention with biased projections, SwiGLU, embeddings tied or
// not. It has three modes over one set of weights: a forward pass that scores
// responses, the hand-written backward pass of the same, and a batched decoder
// with a key/value cache.
//
// Everything is a pure function of its arguments. A response's numbers depend
// on its prompt and itself, never on what shares the pass or the batch, bit for
// bit: package kernel computes each row by itself, and attention never looks
// across responses. The package knows no tokenizer, file, loss or optimizer,
// starts no goroutine, and does not allocate once its buffers have grown.
//
// Start reading at weights.go, then pass.go (forward), backward.go and
// decode.go. Shapes are row-major; R is the rows of a pass, H the hidden size.
package qwen2
