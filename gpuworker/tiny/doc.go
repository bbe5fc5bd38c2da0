// Package tiny is the embedded engine: a Qwen2 decoder in Go on the CPU that
// samples, scores and trains. With it the whole pipeline runs on a machine that
// has only Go. Engine implements gpuworker.Sampler and gpuworker.Learner.
//
// It owns the checkpoint directory (Hugging Face files), the chat format, the
// choice of tokens, the losses, the optimizer, and the division of work among
// goroutines. Package qwen2 is the network, kernel the inner loops, tokenizer and
// safetensors the two file formats. It must not know groups or rewards, and no
// event except the Completion that it returns.
//
// Two invariants hold. A completion depends bit for bit only on weights, prompt,
// seed and parameters, not on its batch. An Update gives the same weights bit for
// bit for every number of goroutines, because gradients are summed in a fixed
// number of shards in a fixed order.
//
// Start reading at engine.go; then sample.go, decoding.go and choose.go for
// sampling, update.go and loss.go for training, checkpoint.go and save.go for
// files (FORMAT.md). Package sft is the train-sft command.
package tiny
