// Package evaluation measures both policies on problems the training never
// sees.
//
// Groups turns held-out problems into groups to pose; each goes through the
// same generation and execution stages as a training group. The stage here
// turns the executed group into one eval.scored event, and Summarize folds the
// events of one evaluation into its figures.
//
// It owns the definitions of the figures: what a correct answer is, avg@k,
// pass@k, the validity of tests, and what counts as having found a defect.
// Everything but the stage's clock is pure. It must not know where problems
// come from, when an evaluation takes place, or how figures are shown.
//
// Start reading at groups.go, then score.go and summary.go.
package evaluation
