// Package rewards computes the rewards of an executed group: it turns one
// code.executed event into one group.rewarded event.
//
// It owns the reward recipes (formulas of the paper and of a user's file, see
// RECIPE.md, and those that see the whole group, see docs/recipes.md), the
// group-relative advantages, the choice of the
// answer that the Test LLM learns from (TOPVAR), and the changes that a group
// makes to the Mistake Book. All of it is a pure function of the executed group.
// Rewards of a log can therefore be computed again under another recipe without
// sampling or executing anything.
//
// An infrastructure failure is never a reward of 0. A suite that was lost is
// masked. An answer that was lost, or that lost all its suites, is masked too.
// Masked answers and suites take no part in any mean, deviation or choice. Lost
// suites and answers change nothing in the Mistake Book. A group with
// only masked answers is dropped with this reason.
//
// The package does not depend on how answers are sampled and executed, or on
// how the models are trained. It reads no clock, and only Load reads a file.
//
// Start reading at score.go, then group.go, a1.go, formula.go and rules.go.
package rewards
