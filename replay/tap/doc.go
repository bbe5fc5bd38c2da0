// Package tap is `codea1 tap`: it follows the events of a run and prints one line
// for each, for people or as JSON.
//
// A tap changes nothing. It follows a running training of the embedded server with
// the read-only login, and reads other buses without acknowledgements, worker set
// or lease. The texts in events come from models: a line for people holds no
// control characters and is bounded.
//
// Start reading at Command; source.go chooses where events are read.
package tap
