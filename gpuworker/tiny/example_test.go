package tiny_test

import (
	"context"
	"fmt"
	"log"

	"codea1/gpuworker"
	"codea1/gpuworker/tiny"
)

func Example() {
	engine, err := tiny.Open("testdata/go")
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()
	prompt, err := engine.EncodePrompt([]gpuworker.Message{{Role: "user", Content: "Say something."}})
	if err != nil {
		log.Fatal(err)
	}
	completions, err := engine.Sample(context.Background(),
		[]gpuworker.SampleRequest{{Prompt: prompt, Seeds: []uint64{1, 2}}},
		gpuworker.SamplingParams{Temperature: 1, TopP: 1, MaxTokens: 8})
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range completions[0] {
		fmt.Println(len(c.Tokens), "tokens, finished by", c.Finish)
	}
	// Output:
	// 8 tokens, finished by length
	// 8 tokens, finished by length
}
