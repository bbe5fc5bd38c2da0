// Package curriculum decides what to pose next: which question in which step,
// when the policies are new enough for it, which tests of the Mistake Book go
// with it, and when an evaluation interrupts training.
//
// Curriculum is a pure fold over the log, in the log's order: the Observe
// methods take what happened, Due returns the groups to pose now. Nothing else is kept, so
// a restart observes the log again and goes on. Service is the thin shell that
// decodes, publishes and, for a run with a budget, looks at the clock: that the
// step under way is the last one reaches the Curriculum as a call of End.
//
// It must not know how questions are loaded, how the Mistake Book is stored or
// how answers are scored: it is given problems, a Book and evaluation groups.
//
// Start reading at curriculum.go; order.go holds the shuffling, pace.go
// what a budget is kept by.
package curriculum
