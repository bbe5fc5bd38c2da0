// Package published reads the published files of CRUXEval, LiveCodeBench and
// BigCodeBench, and grades answers to their problems.
//
// It owns these formats and the rules by which their evaluators judge an answer. It
// must not know how an answer was sampled, or the figures that follow from verdicts.
// EvalPlus's files have a package of their own, because problems with golden tests are
// made of them.
//
// No format needs the code of its evaluator. The data is read from files that the user
// has:
//
//	CRUXEval       https://huggingface.co/datasets/cruxeval-org/cruxeval
//	LiveCodeBench  https://huggingface.co/datasets/livecodebench/code_generation_lite
//	BigCodeBench   https://huggingface.co/datasets/bigcode/bigcodebench, ...-hard
//
// Start reading at file.go, then grade.go.
package published
