// Package mutant makes realistic mistakes: programs that differ from a correct
// one by a single slip of the kind people and models make, such as a boundary
// off by one, a forgotten filter or a reducer that fails on empty input.
//
// It knows programs, not problems: whether a mutant behaves differently is for
// its caller to find out by running it.
//
// Start reading at Of; the slips themselves are in slips.go.
package mutant
