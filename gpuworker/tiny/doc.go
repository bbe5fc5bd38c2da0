// Package tiny is the embedded engine: a Qwen2 decoder in Go on the CPU that
// samples, scores and trains, so that the whole loop runs on a machine with
// nothing but Go. Engine implements gpuworker.Sampler and gpuworker.Learner.
//
// It owns the checkpoint directory (Hugging Face files in and out), the chat
// format, the choice of tokens, the losses and the optimizer, and the way work
// is spread over threads. The arithmetic lives below it: qwen2 is the network,
// kernel the inner loops, tokenizer and safetensors the two file formats. It
// must not know groups, rewards or events beyond the Completion it returns.
//
// Two invariants hold everywhere. A completion depends on weights, prompt, seed
// and parameters alone, bit for bit, whatever shares its batch. And an Update
// gives the same weights, bit for bit, for any number of threads: gradients are
// summed in a fixed number of shards, in a fixed order.
//
// Start reading at engine.go; then sample.go, decoding.go and choose.go for
// sampling, update.go and loss.go for training, checkpoint.go and save.go for
// files (FORMAT.md). Package sft is the train-sft command.
package tiny
