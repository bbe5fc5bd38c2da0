// Package judging judges the answers of a group before they run: a scanner finds
// weaknesses in them, a reward model scores them, or a language model says whether they
// are vulnerable.
//
// It owns the judge stage and the run of bandit in the sandbox. It must not know rewards,
// and how a model is asked: a Model does that. An answer is hostile text, which is parsed
// and never run here. If a judge cannot judge it, it has no measurement and the reason.
//
// Start reading at handler.go; scan.go has bandit.
package judging
