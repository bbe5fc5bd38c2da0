// Package curriculum decides which group to pose next: which problem in which step,
// when the policies are new enough for it, which historical tests go with it,
// and when an evaluation interrupts training.
//
// Curriculum is a pure fold over the log, in the log's order: the Observe
// methods record events, Due returns the groups to pose now. It has no other
// state, so a restarted curriculum observes the log again and continues. Service
// is a thin shell that decodes and publishes. For a run with a budget, Service
// also reads the clock and calls Curriculum.End when the current step must be
// the last one.
//
// It must not know how problems are loaded, how the Mistake Book is stored or
// how answers are scored. Its caller provides problems, a Book and evaluation
// groups.
//
// Start reading at curriculum.go. The shuffling is in order.go, the time
// measurement for the budget in durations.go.
package curriculum
