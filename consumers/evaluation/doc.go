// Package evaluation measures both policies on problems that are not trained
// on.
//
// Groups turns held-out problems into groups to pose. Each group passes through
// the same rollout and execution stages as a training group. The evaluation
// stage turns the executed group into one eval.scored event, and Figures folds
// the events of one evaluation.
//
// The package owns the definitions of the figures: a correct answer, avg@k,
// pass@k, the validity of tests, a found and a reached defect, and a trivial input. Everything but the stage's
// clock is pure. The package does not depend on the source of the problems, on
// the schedule of evaluations, or on the display of the figures.
//
// Start reading at groups.go, then score.go and figures.go.
package evaluation
