package literal_test

import (
	"fmt"

	"codea1/consumers/execution/literal"
)

func Example() {
	a, err := literal.Parse("{'total': 3, 'items': {2, 1}}")
	if err != nil {
		panic(err)
	}
	b := literal.Dict{
		{Key: literal.Str("items"), Value: literal.FrozenSet{literal.NewInt(1), literal.Float(2)}},
		{Key: literal.Str("total"), Value: literal.NewInt(3)},
	}
	fmt.Println(literal.Text(a))
	fmt.Println(literal.Equal(a, b))
	// Output:
	// {'total': 3, 'items': {1, 2}}
	// true
}
