package problems

import (
	"fmt"
	"slices"
	"strings"
)

// layout is a known set of parquet columns.
type layout struct {
	name    string
	needs   []string
	problem func(*record) (Problem, error)
}

// layouts are tried in order.
var layouts = []layout{
	{
		name: "KodCode-V1", problem: kodCodeProblem,
		needs: []string{"question_id", "question", "solution", "test", "test_info.function_name"},
	},
	{
		name: "reference training", problem: referenceTrainingProblem,
		needs: []string{"extra_info.question_id", "clean_description", "GT_code", "GT_test"},
	},
	{
		name: "reference validation", problem: referenceValidationProblem,
		needs: []string{"extra_info.question_id", "extra_info.function_name", "problem", "GT_code", "test", "data_source"},
	},
	{
		name: "codea1", problem: ownProblem,
		needs: []string{"id", "question", "entry_point", "solution", "tests"},
	},
}

// layoutOf finds the layout of a file by its columns.
func layoutOf(columns []string) (layout, error) {
	var known strings.Builder
	for _, l := range layouts {
		missing := slices.DeleteFunc(slices.Clone(l.needs), func(column string) bool { return slices.Contains(columns, column) })
		if len(missing) == 0 {
			return l, nil
		}
		fmt.Fprintf(&known, "; for %s it lacks %s", l.name, strings.Join(missing, ", "))
	}
	return layout{}, fmt.Errorf("%w: its columns are of no known layout%s", ErrUnknownSet, known.String())
}

// ownProblem reads a row with the columns of the JSON form, such as
// `codea1 replay export --table golden` writes.
func ownProblem(r *record) (Problem, error) {
	return Problem{
		ID: r.required("id"), Source: r.optional("source"), Difficulty: r.optional("difficulty"), Question: r.required("question"),
		StarterCode: r.optional("starter_code"), EntryPoint: r.required("entry_point"), Solution: r.required("solution"), Tests: r.list("tests"),
	}, r.err
}

// referenceTrainingProblem reads a row of the training set of the paper's own
// program: KodCode-V1's hard questions, rewritten, with a list of asserts.
func referenceTrainingProblem(r *record) (Problem, error) {
	p := Problem{
		ID: r.required("extra_info.question_id"), Source: r.optional("data_source"),
		Question: r.required("clean_description"), Solution: r.required("GT_code"), Tests: r.list("GT_test"),
		EntryPoint: r.optional("extra_info.function_name"),
	}
	if r.err == nil && p.EntryPoint == "" {
		if p.EntryPoint = calledFunction(p.Solution, p.Tests); p.EntryPoint == "" {
			return p, &FieldError{"GT_code", "defines no function that GT_test calls"}
		}
	}
	return p, r.err
}

// referenceValidationProblem reads a row of the validation set of the paper's
// own program: EvalPlus problems with one check(candidate) script each.
func referenceValidationProblem(r *record) (Problem, error) {
	p := Problem{
		ID: r.required("extra_info.question_id"), Source: r.required("data_source"),
		Question: r.required("problem"), Solution: r.required("GT_code"), EntryPoint: r.required("extra_info.function_name"),
	}
	test := r.required("test")
	// A HumanEval+ solution is only the body of the function that the question
	// ends with. Its test is a function of the candidate.
	if p.Source == "humanevalplus" {
		p.Solution = p.Question + p.Solution
		test += "\ncheck(" + p.EntryPoint + ")\n"
	}
	p.Tests = []string{test}
	return p, r.err
}
