package tiny

import (
	"cmp"
	"fmt"
	"slices"

	"codea1/gpuworker"
	"codea1/gpuworker/tiny/qwen2"
)

// maxUnitRows limits the activations of one pass and the size of a unit of work.
// A group of 8 answers to one prompt fits.
const maxUnitRows = 512

// unit is the work of one pass: neighbouring sequences with the same prompt. The
// pass computes the prompt once.
type unit struct {
	group   qwen2.Group
	indices []int // of the sequence of each response
}

// makeUnits divides the sequences that have tokens into units, in order.
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

// gradientShards is the number of partial sums of a gradient. It is fixed, so the
// order of additions, and with it the weights, does not depend on the number of
// goroutines. An Update cannot use more goroutines than this.
const gradientShards = 8

// shard divides units evenly among gradientShards shards: it takes the largest
// unit first and adds it to the shard with the fewest rows. On a tie the lower
// index wins.
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

// checkSequences returns an error for a sequence that a pass cannot compute.
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
