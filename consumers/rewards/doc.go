// Package rewards says what the answers and the suites of an executed group
// are worth: one code.executed event in, one group.rewarded event out.
//
// It owns the reward formulas (a file per recipe; formula.go for those that
// users write, see RECIPE.md), the group-relative advantages, the choice of the
// answer the Test LLM learns from (TOPVAR), and the changes a group makes to
// the Mistake Book. All of it is a pure function of the executed group, so a log
// can be scored again under another recipe without sampling or executing
// anything.
//
// An infrastructure failure is never a reward of 0. A suite that was lost is
// masked; so is an answer that was lost, or that lost all its suites. What is
// masked takes no part in any mean, deviation or choice, what was lost changes
// nothing in the Mistake Book, and a group of masked answers is dropped by name.
//
// The package must not know how answers were sampled or run, nor who learns
// from the rewards. It reads no clock and no file.
//
// Start reading at score.go, then a1.go and rules.go.
package rewards
