package tokenizer

import (
	"fmt"
	"iter"
	"slices"

	"golang.org/x/text/unicode/norm"
)

// MinVocabulary is the smallest vocabulary of Train: the bytes and the three
// special tokens.
const MinVocabulary = 256 + 3

// minPairCount is the lowest count of a pair that becomes a token.
const minPairCount = 2

// Train makes a vocabulary of at most size tokens from texts: the 256 bytes, then
// merges of the most frequent pair (on a tie the pair with lower ids), then the
// three special tokens of Qwen2. It stops early if no pair occurs twice. The same
// texts in any order give the same tokenizer.
func Train(texts iter.Seq[string], size int) (*Tokenizer, error) {
	if size < MinVocabulary || size > MaxVocabulary {
		return nil, fmt.Errorf("vocabulary of %d tokens is outside %d to %d", size, MinVocabulary, MaxVocabulary)
	}
	tr := newTrainer(countPieces(texts))
	var order [][2]string
	for len(tr.tokens) < size-3 {
		p, count := tr.mostFrequent()
		if count < minPairCount {
			break
		}
		order = append(order, [2]string{tr.tokens[p.left], tr.tokens[p.right]})
		tr.merge(p)
	}
	vocabulary := make(map[string]int32, len(tr.tokens))
	for id, token := range tr.tokens {
		vocabulary[token] = int32(id)
	}
	var added []addedToken
	for i, special := range []string{EndOfText, TurnStart, TurnEnd} {
		added = append(added, addedToken{int32(len(tr.tokens) + i), special, true})
	}
	return build(vocabulary, order, added)
}

// countPieces returns the number of occurrences of each piece of the texts.
func countPieces(texts iter.Seq[string]) map[string]int {
	counts := make(map[string]int)
	for text := range texts {
		text = norm.NFC.String(text)
		for len(text) > 0 {
			n := nextPiece(text)
			counts[text[:n]]++
			text = text[n:]
		}
	}
	return counts
}

// word is a distinct piece of the texts in its current tokens.
type word struct {
	symbols []int32
	count   int
}

type trainer struct {
	tokens []string // by id
	known  map[string]bool
	words  []word
	counts map[pair]int
	where  map[pair]map[int]struct{} // indices of words that have, or had, the pair
}

func newTrainer(pieces map[string]int) *trainer {
	tr := &trainer{known: make(map[string]bool), counts: make(map[pair]int), where: make(map[pair]map[int]struct{})}
	var ids [256]int32
	for i, b := range alphabet() {
		ids[b] = int32(i)
		tr.tokens = append(tr.tokens, string([]byte{b}))
	}
	for piece, count := range pieces {
		w := word{count: count, symbols: make([]int32, len(piece))}
		for i := range len(piece) {
			w.symbols[i] = ids[piece[i]]
		}
		tr.words = append(tr.words, w)
		tr.count(len(tr.words)-1, count)
	}
	return tr
}

// count adds by to the counts of the pairs of a word.
func (tr *trainer) count(index, by int) {
	symbols := tr.words[index].symbols
	for i := range len(symbols) - 1 {
		p := pair{symbols[i], symbols[i+1]}
		tr.counts[p] += by
		if by > 0 {
			if tr.where[p] == nil {
				tr.where[p] = make(map[int]struct{})
			}
			tr.where[p][index] = struct{}{}
		}
	}
}

func (tr *trainer) mostFrequent() (best pair, most int) {
	for p, count := range tr.counts {
		if count > most || count == most && count > 0 && before(p, best) {
			// A string of bytes must have only one id.
			if !tr.known[tr.tokens[p.left]+tr.tokens[p.right]] {
				best, most = p, count
			}
		}
	}
	return best, most
}

func before(a, b pair) bool {
	return a.left < b.left || a.left == b.left && a.right < b.right
}

// merge makes p a token and replaces it in the words.
func (tr *trainer) merge(p pair) {
	id := int32(len(tr.tokens))
	token := tr.tokens[p.left] + tr.tokens[p.right]
	tr.tokens = append(tr.tokens, token)
	tr.known[token] = true
	for index := range tr.where[p] {
		w := &tr.words[index]
		tr.count(index, -w.count)
		merged := w.symbols[:0]
		for i := 0; i < len(w.symbols); i++ {
			if i+1 < len(w.symbols) && w.symbols[i] == p.left && w.symbols[i+1] == p.right {
				merged = append(merged, id)
				i++
				continue
			}
			merged = append(merged, w.symbols[i])
		}
		w.symbols = slices.Clip(merged)
		tr.count(index, w.count)
	}
	delete(tr.where, p)
	delete(tr.counts, p)
}
