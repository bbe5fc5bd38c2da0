package checkpoint

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExpiredCheckpoints(t *testing.T) {
	for _, c := range []struct {
		versions    []int
		last, every int
		want        []int
	}{
		{[]int{0, 1, 2, 3, 4, 5}, 3, 0, []int{1, 2}},
		{[]int{0, 1, 2, 3, 4, 5}, 3, 2, []int{1}},
		{[]int{7}, 1, 0, nil},
		{[]int{1, 2}, 3, 0, nil},
		{nil, 3, 5, nil},
		{[]int{0, 98, 99, 100, 101}, 1, 50, []int{98, 99}},
	} {
		if d := cmp.Diff(c.want, expired(c.versions, c.last, c.every)); d != "" {
			t.Errorf("%v, last %d, every %d: %s", c.versions, c.last, c.every, d)
		}
	}
}
