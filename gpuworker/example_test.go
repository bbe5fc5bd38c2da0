package gpuworker_test

import (
	"fmt"

	"codea1/events"
	"codea1/gpuworker"
)

func ExampleSchedule() {
	s := gpuworker.Schedule{Base: 1e-6, Warmup: 10, Total: 210}
	for _, taken := range []int{0, 9, 110, 210} {
		fmt.Printf("after %3d steps: %.2e\n", taken, s.At(taken))
	}
	// Output:
	// after   0 steps: 1.00e-07
	// after   9 steps: 1.00e-06
	// after 110 steps: 5.00e-07
	// after 210 steps: 0.00e+00
}

func ExamplePrompt() {
	flags := gpuworker.PromptFlags{PromptStyle: gpuworker.StylePlain}
	prompt, err := flags.Prompt(events.RoleTest)
	if err != nil {
		fmt.Println(err)
		return
	}
	problem := &events.Problem{Question: "Return the largest number of a list.", EntryPoint: "largest"}
	messages, err := prompt.Write(gpuworker.TestFields(problem, "def largest(xs):\n    return xs[-1]\n", 8, nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(messages[0].Content)
	// Output:
	// Return the largest number of a list.
	// ```python
	// def largest(xs):
	//     return xs[-1]
	// ```
}
