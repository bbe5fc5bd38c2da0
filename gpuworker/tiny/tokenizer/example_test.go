package tokenizer_test

import (
	"fmt"
	"log"
	"slices"

	"codea1/gpuworker/tiny/tokenizer"
)

func Example() {
	texts := []string{"def solve(x):", "    return solve(x)"}
	t, err := tokenizer.Train(slices.Values(texts), 300)
	if err != nil {
		log.Fatal(err)
	}
	ids := t.Encode("solve(solve(x))")
	fmt.Println(len(ids), t.Decode(ids))
	// Output: 8 solve(solve(x))
}
