// Package grammar makes the built-in problems: short Python functions over
// lists of ints, strings and numbers, composed from parts such as a source, a
// filter, a map and a reducer, each with its words for the question and its
// piece of code.
//
// The phrasing is regular, so that a small model that has seen the parts can
// solve compositions it has not seen. Held-out problems are exactly that: every
// part of theirs occurs in training, their combination does not, and no two
// problems of either set behave alike on the probes of their domain.
//
// It knows no files, events or commands. Everything is derived from one fixed
// seed; a golden hash in the tests notices any change.
//
// Start reading at Sets, then families.go for what there is, and numbers.go for
// how one family is built.
package grammar
