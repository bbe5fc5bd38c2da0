package kernel_test

import (
	"fmt"

	"codea1/gpuworker/tiny/kernel"
)

// A linear layer of 2 inputs and 3 outputs on a batch of 2 rows, and the
// gradient of its weight.
func Example() {
	weight := []float32{ // [out,in], as checkpoints store it
		1, 0,
		0, 1,
		1, 1,
	}
	x := []float32{
		1, 2,
		3, 4,
	}
	var packed kernel.Packed
	kernel.Pack(&packed, weight, 2, 3, true)

	y := make([]float32, 2*3)
	kernel.MatMul(y, 3, x, 2, 2, &packed, false)
	fmt.Println(y)

	dy := []float32{
		1, 0, 0,
		0, 0, 1,
	}
	dWeight := make([]float32, 3*2)
	kernel.MatMulTA(dWeight, 2, dy, 3, x, 2, 2, 3, 2)
	fmt.Println(dWeight)
	// Output:
	// [1 2 3 3 4 7]
	// [1 2 0 0 3 4]
}
