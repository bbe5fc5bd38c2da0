package tiny

import (
	"cmp"
	"fmt"
	"slices"

	"codea1/gpuworker"
	"codea1/gpuworker/tiny/qwen2"
)

// maxUnitRows bounds the activations of one pass. It is also how finely work
// is spread: a group of 8 answers to one prompt fits.
const maxUnitRows = 512

// unit is what one pass computes: neighbouring sequences with the same prompt,
// which is computed once.
type unit struct {
	group   qwen2.Group
	indices []int // of the sequences, by response
}

// makeUnits covers the sequences that have tokens, in order.
func makeUnits(sequences []gpuworker.Sequence) []unit {
	var units []unit
	for i, s := range sequences {
		if len(s.Tokens) == 0 {
			continue
		}
		if n := len(units); n > 0 {
			last := &units[n-1]
			if last.group.Rows()+len(s.Tokens) <= maxUnitRows && slices.Equal(last.group.Prompt, s.Prompt) {
				last.group.Responses = append(last.group.Responses, s.Tokens)
				last.indices = append(last.indices, i)
				continue
			}
		}
		units = append(units, unit{
			group:   qwen2.Group{Prompt: s.Prompt, Responses: [][]int32{s.Tokens}},
			indices: []int{i},
		})
	}
	return units
}

// gradientShards is how many partial sums a gradient is made of. It is fixed,
// so that the order of additions, and with it the weights, do not depend on
// the number of threads; more threads than this do not help an Update.
const gradientShards = 8

// shard spreads units evenly over gradientShards: the largest first, each to
// the shard with the fewest rows. Ties fall to the lower index.
func shard(units []unit) [][]unit {
	order := slices.Clone(units)
	slices.SortStableFunc(order, func(a, b unit) int { return cmp.Compare(b.group.Rows(), a.group.Rows()) })
	shards := make([][]unit, min(gradientShards, len(units)))
	rows := make([]int, len(shards))
	for _, u := range order {
		least := 0
		for i := range rows {
			if rows[i] < rows[least] {
				least = i
			}
		}
		shards[least] = append(shards[least], u)
		rows[least] += u.group.Rows()
	}
	return shards
}

// checkSequences refuses what a pass cannot compute.
func checkSequences(sequences []gpuworker.Sequence, config qwen2.Config) error {
	for i, s := range sequences {
		if len(s.Tokens) == 0 {
			continue
		}
		if err := checkTokens("prompt", s.Prompt, config); err != nil {
			return fmt.Errorf("sequence %d: %w", i, err)
		}
		if err := checkTokens("response", s.Tokens, config); err != nil {
			return fmt.Errorf("sequence %d: %w", i, err)
		}
		if n := len(s.Prompt) + len(s.Tokens); n > config.Positions {
			return fmt.Errorf("sequence %d: %w: %d tokens exceed the model's %d positions", i, ErrBadRequest, n, config.Positions)
		}
	}
	return nil
}
