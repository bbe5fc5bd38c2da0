package client

import "fmt"

// Explain adds the failed operation in front of an error, unless it is nil.
// Defer it in a function with a named error result.
func Explain(err *error, operation string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", fmt.Sprintf(operation, args...), *err)
	}
}
