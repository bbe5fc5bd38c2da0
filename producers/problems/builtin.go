package problems

import (
	"bytes"
	_ "embed" // the data of the built-in problems
	"io"

	"github.com/klauspost/compress/zstd"
)

//go:generate go run ./internal/generate

// The built-in sets, as JSONL that any tool for zstd unpacks.
var (
	//go:embed builtin/train.jsonl.zst
	builtinTraining []byte
	//go:embed builtin/heldout.jsonl.zst
	builtinHeldOut []byte
	//go:embed builtin/hard.jsonl.zst
	builtinHard []byte
	//go:embed builtin/hard-heldout.jsonl.zst
	builtinHardHeldOut []byte
)

// builtinRows reads the embedded sets one after the other.
func builtinRows(sets ...[]byte) rows {
	return func(yield func(row, error) bool) {
		var texts []io.Reader
		for _, set := range sets {
			text, err := zstd.NewReader(bytes.NewReader(set), zstd.WithDecoderConcurrency(1))
			if err != nil {
				yield(row{}, err)
				return
			}
			defer text.Close()
			texts = append(texts, text)
		}
		jsonlRows(io.MultiReader(texts...))(yield)
	}
}
