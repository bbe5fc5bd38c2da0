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
	problem func(record) (Problem, error)
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
		name: "a set of this program", problem: ownProblem,
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

// fields collects the columns of a problem and the first error among them.
type fields struct {
	record
	err error
}

func (f *fields) text(column string) string {
	text, err := f.one(column)
	if f.err == nil {
		f.err = err
	}
	return text
}

func (f *fields) texts(column string) []string {
	texts, err := f.list(column)
	if f.err == nil {
		f.err = err
	}
	return texts
}

// optional is "" for a column that is null or not in the file.
func (f *fields) optional(column string) string {
	text, _ := f.one(column)
	return text
}

// ownProblem reads a row with the columns of the JSON form, such as
// `codea1 replay export --table golden` writes.
func ownProblem(r record) (Problem, error) {
	f := fields{record: r}
	p := Problem{
		ID: f.text("id"), Source: f.optional("source"), Difficulty: f.optional("difficulty"), Question: f.text("question"),
		StarterCode: f.optional("starter_code"), EntryPoint: f.text("entry_point"), Solution: f.text("solution"), Tests: f.texts("tests"),
	}
	return p, f.err
}

// referenceTrainingProblem reads a row of the training set of the paper's own
// program: KodCode-V1's hard questions, rewritten, with a list of asserts.
func referenceTrainingProblem(r record) (Problem, error) {
	f := fields{record: r}
	p := Problem{
		ID: f.text("extra_info.question_id"), Source: f.optional("data_source"),
		Question: f.text("clean_description"), Solution: f.text("GT_code"), Tests: f.texts("GT_test"),
		EntryPoint: f.optional("extra_info.function_name"),
	}
	if f.err == nil && p.EntryPoint == "" {
		if p.EntryPoint = calledFunction(p.Solution, p.Tests); p.EntryPoint == "" {
			return p, &FieldError{"GT_code", "defines no function that GT_test calls"}
		}
	}
	return p, f.err
}

// referenceValidationProblem reads a row of the validation set of the paper's
// own program: EvalPlus problems with one check(candidate) script each.
func referenceValidationProblem(r record) (Problem, error) {
	f := fields{record: r}
	p := Problem{
		ID: f.text("extra_info.question_id"), Source: f.text("data_source"),
		Question: f.text("problem"), Solution: f.text("GT_code"), EntryPoint: f.text("extra_info.function_name"),
	}
	test := f.text("test")
	// A HumanEval+ solution is only the body of the function that the question
	// ends with, and its test a function that waits for the candidate.
	if p.Source == "humanevalplus" {
		p.Solution = p.Question + p.Solution
		test += "\ncheck(" + p.EntryPoint + ")\n"
	}
	p.Tests = []string{test}
	return p, f.err
}
