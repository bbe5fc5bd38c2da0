package problems

import "testing"

// The built-in sets are made at every start, in well under a second: see
// internal/grammar's BenchmarkSets for making them, this for a corpus.
func BenchmarkCorpus(b *testing.B) {
	for _, role := range []string{"code", "test"} {
		b.Run(role, func(b *testing.B) {
			rows, err := Corpus(role, 1, maxRows, DefaultMix())
			if err != nil {
				b.Fatal(err)
			}
			n := 0
			for range rows {
				if n++; n > b.N {
					break
				}
			}
		})
	}
}
