package checkpoint_test

import (
	"fmt"

	"codea1/gpuworker/checkpoint"
)

func ExampleURI() {
	uri, err := checkpoint.URI("/runs/first try/checkpoints/code/v000012")
	fmt.Println(uri, err)
	// Output: file:///runs/first%20try/checkpoints/code/v000012 <nil>
}
