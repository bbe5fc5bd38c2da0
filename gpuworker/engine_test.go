package gpuworker_test

import (
	"slices"

	"codea1/gpuworker/tiny"
	"codea1/gpuworker/tiny/qwen2"
	"codea1/gpuworker/tiny/tokenizer"
)

// newEngine returns a very small model: one token per byte, weights drawn by
// seed.
func newEngine(seed uint64) *tiny.Engine {
	t, err := tokenizer.Train(slices.Values([]string(nil)), tokenizer.MinVocabulary)
	if err != nil {
		panic(err)
	}
	e, err := tiny.New(qwen2.Config{
		Hidden: 8, Layers: 1, Heads: 2, KVHeads: 1, HeadSize: 4, MLP: 8, Positions: 512,
		RopeTheta: 10000, NormEpsilon: 1e-6, TieEmbeddings: true, InitStd: 0.5,
	}, t, seed)
	if err != nil {
		panic(err)
	}
	return e
}
