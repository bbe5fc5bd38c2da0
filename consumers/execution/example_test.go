package execution_test

import (
	"context"
	"fmt"
	"log"

	"codea1/consumers/execution"
	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
)

func Example() {
	ctx := context.Background()
	pool, err := sandbox.Open(ctx, sandbox.Config{Workers: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = pool.Close() }()

	program := sandbox.Program{Code: "def half(n):\n    return n / 2\n", EntryPoint: "half"}
	report, err := pool.Run(ctx, program, []string{"half(3)", "half('a')"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Loads)
	fmt.Println(literal.Text(report.Outcomes[0].Value))
	fmt.Println(report.Outcomes[1].Detail)

	verdicts, err := execution.New(pool).Check(ctx, program.Code, "half", []string{"assert half(4) == 2", "assert half(4) == 3"})
	if err != nil {
		log.Fatal(err)
	}
	for _, v := range verdicts {
		fmt.Printf("%s %q\n", v.Verdict, v.Detail)
	}
	// Output:
	// true
	// 1.5
	// TypeError: unsupported operand type(s) for /: 'str' and 'int'
	// pass ""
	// fail "returned 2.0"
}
