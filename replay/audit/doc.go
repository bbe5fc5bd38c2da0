// Package audit checks the events of a run for contradictions: every effect has
// its cause, every group ends exactly once and is trained exactly once, every
// policy version follows the one before, and every reward follows from its
// verdicts.
//
// It reads the log through eventlog.Reader and must not know how the log is
// stored: Log.Verify checks the store itself. Reward recipes come from outside,
// as query.Recipes.
//
// Start reading at audit.go; groups.go has the rules of groups and steps,
// causality.go those of causes.
package audit
