package tokenizer

import "container/heap"

// pair is two adjacent tokens.
type pair struct{ left, right int32 }

// merge is the token that a pair becomes and the rank of the merge.
type merge struct {
	rank int32
	into int32
}

// shortPiece is the length up to which a scan for the best pair is faster than the
// heap. Both give the same tokens: they merge the lowest rank first, and the
// leftmost pair of a rank first.
const shortPiece = 48

// appendMerged appends the tokens of one piece of text to ids.
func (t *Tokenizer) appendMerged(ids []int32, piece string) []int32 {
	start := len(ids)
	for i := range len(piece) {
		ids = append(ids, t.byteIDs[piece[i]])
	}
	if len(piece) > shortPiece {
		return append(ids[:start], t.mergeLong(ids[start:])...)
	}
	symbols := ids[start:]
	for len(symbols) > 1 {
		best, at := merge{rank: -1}, 0
		for i := range len(symbols) - 1 {
			if m, ok := t.merges[pair{symbols[i], symbols[i+1]}]; ok && (best.rank < 0 || m.rank < best.rank) {
				best, at = m, i
			}
		}
		if best.rank < 0 {
			break
		}
		symbols[at] = best.into
		symbols = append(symbols[:at+1], symbols[at+2:]...)
	}
	return ids[:start+len(symbols)]
}

// candidate is a merge that was possible when it was added to the queue.
type candidate struct {
	merge
	at          int // index of the left symbol
	left, right int32
}

type candidates []candidate

func (c candidates) Len() int { return len(c) }
func (c candidates) Less(i, j int) bool {
	if c[i].rank != c[j].rank {
		return c[i].rank < c[j].rank
	}
	return c[i].at < c[j].at
}
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }

// Push implements heap.Interface.
func (c *candidates) Push(x any) { *c = append(*c, x.(candidate)) }

// Pop implements heap.Interface.
func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// mergeLong merges in O(n log n) with a linked list of symbols.
func (t *Tokenizer) mergeLong(ids []int32) []int32 {
	const gone = -1
	symbols := append([]int32(nil), ids...)
	previous := make([]int, len(ids))
	next := make([]int, len(ids))
	var queue candidates
	push := func(at int) {
		if at < 0 || next[at] >= len(symbols) {
			return
		}
		l, r := symbols[at], symbols[next[at]]
		if m, ok := t.merges[pair{l, r}]; ok {
			heap.Push(&queue, candidate{m, at, l, r})
		}
	}
	for i := range symbols {
		previous[i], next[i] = i-1, i+1
	}
	for i := range symbols {
		push(i)
	}
	for queue.Len() > 0 {
		c := heap.Pop(&queue).(candidate)
		right := next[c.at]
		if symbols[c.at] != c.left || right >= len(symbols) || symbols[right] != c.right {
			continue // an earlier merge used one of the two
		}
		symbols[c.at], symbols[right] = c.into, gone
		next[c.at] = next[right]
		if next[right] < len(symbols) {
			previous[next[right]] = c.at
		}
		push(previous[c.at])
		push(c.at)
	}
	merged := symbols[:0]
	for _, id := range symbols {
		if id != gone {
			merged = append(merged, id)
		}
	}
	return merged
}
