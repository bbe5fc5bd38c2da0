// Package grading is the command `sandbox grade`: it runs the tests of problems
// on files of answers and writes one grade per answer.
//
// It must not know groups or events' transport. Start reading at grading.go.
package grading
