package tiny

import (
	"math/rand/v2"
	"testing"

	"codea1/gpuworker"
	"codea1/gpuworker/tiny/qwen2"
)

// TestDecodeLoopDoesNotAllocate covers the whole work per token of a batch: the
// order of the slots, the decoder's step and the choice of a token.
func TestDecodeLoopDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for name, params := range map[string]gpuworker.SamplingParams{
		"all tokens":      {Temperature: 1, TopP: 1, MaxTokens: 60},
		"top-k and top-p": {Temperature: 0.7, TopP: 0.9, TopK: 20, MaxTokens: 60},
	} {
		t.Run(name, func(t *testing.T) {
			e := newTestEngine(t, shape, 1)
			e.chat.turnEnd, e.chat.endOfText = -1, -1 // no sequence ends
			d := e.newDecoding(params, 5)
			pass := qwen2.NewPass(e.current.net)
			for slot := range 5 {
				s := &sequence{request: slot / 2, prompt: []int32{1, 2, int32(slot / 2)}, rng: rand.New(rand.NewPCG(uint64(slot), 0))}
				if err := d.enter(slot, s, pass); err != nil {
					t.Fatal(err)
				}
			}
			allocated := testing.AllocsPerRun(40, func() {
				d.gather()
				if err := d.step(); err != nil {
					t.Fatal(err)
				}
			})
			if len(d.batch) != 5 {
				t.Errorf("%d sequences are left of 5", len(d.batch))
			}
			if allocated > 0 {
				t.Errorf("%g allocations a token", allocated)
			}
		})
	}
}
