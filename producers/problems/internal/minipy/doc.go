// Package minipy reads and runs the small part of Python that the built-in
// problems are written in: one function over ints, strings, booleans and
// lists, made of return, if, for, assignment and comprehensions.
//
// It exists so that ground truths, their golden tests and their realistic
// mistakes can be made without a Python process: a problem set is needed at
// every start, in milliseconds. It agrees with CPython on every program it
// accepts (the tests run both) and refuses everything else.
//
// It knows nothing of problems, questions or grammars.
//
// Start reading at Parse, then Func.Call.
package minipy
