package evaluation_test

import (
	"fmt"

	"codea1/consumers/evaluation"
)

func ExamplePassAtK() {
	// 8 answers were sampled and 2 are correct.
	for _, k := range []int{1, 2, 4, 8} {
		fmt.Printf("pass@%d = %.3f\n", k, evaluation.PassAtK(8, 2, k))
	}
	// Output:
	// pass@1 = 0.250
	// pass@2 = 0.464
	// pass@4 = 0.786
	// pass@8 = 1.000
}
