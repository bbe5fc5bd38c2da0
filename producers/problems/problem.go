package problems

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"codea1/events"
)

// Limits of one problem. A row beyond them is a bad row.
const (
	MaxTextBytes = events.MaxTextBytes // question or code
	MaxTestBytes = 1 << 20             // one golden test
	MaxNameBytes = 512                 // ID, source, entry point, difficulty, bug type
	MaxTests     = 2_000
	MaxBuggy     = 64
)

// maxGoldenBytes bounds the golden tests of one event. Its payload must also
// hold the answers and suites of a group.
const maxGoldenBytes = events.MaxPayloadBytes / 4

// Problem is one item of a problem set.
type Problem struct {
	ID          string   `json:"id"`
	Source      string   `json:"source"`
	Difficulty  string   `json:"difficulty,omitempty"`
	Question    string   `json:"question"`
	StarterCode string   `json:"starter_code,omitempty"`
	EntryPoint  string   `json:"entry_point"`     // a function's name, or an expression such as Solution().method
	Solution    string   `json:"solution"`        // the ground truth, a whole Python module
	Tests       []string `json:"tests"`           // golden tests, each one assert or one stand-alone script
	Atol        float64  `json:"atol,omitempty"`  // tolerance of numbers in tests of the form assert CALL == LITERAL
	Buggy       []Buggy  `json:"buggy,omitempty"` // wrong solutions that the golden tests catch

	// Predict makes it a predict problem: an answer has one literal per item, in lines, and
	// is not run. The golden tests are for problems check only.
	Predict []events.Prediction `json:"predict,omitempty"`
}

// Buggy is a wrong solution of a problem.
type Buggy struct {
	Code    string `json:"code"`
	BugType string `json:"bug_type"`
}

// Posable returns the problem as an event carries it, with its golden tests or
// without. It leaves out golden tests that are too large for an event and
// returns how many.
func (p *Problem) Posable(golden bool) (posable events.Problem, omitted int) {
	posable = events.Problem{ID: p.ID, Question: p.Question, EntryPoint: p.EntryPoint, Solution: p.Solution}
	if posable.Predict = p.Predict; !golden || len(p.Predict) > 0 {
		return posable, 0
	}
	posable.Atol = p.Atol
	size := 0
	for _, test := range p.Tests {
		if len(test) > events.MaxTextBytes || size+len(test) > maxGoldenBytes {
			omitted++
			continue
		}
		size += len(test)
		posable.Golden = append(posable.Golden, test)
	}
	return posable, omitted
}

// FieldError is the reason why a field of a problem is not valid.
type FieldError struct {
	Field  string // as in the file
	Reason string // completes "field id ..."
}

func (e *FieldError) Error() string { return "field " + e.Field + " " + e.Reason }

// Validate checks that every field that a stage needs is present and that all
// fields are within their limits. Its errors are of type *FieldError.
func (p *Problem) Validate() error {
	for _, f := range []struct {
		name, text string
		limit      int
		required   bool
	}{
		{"id", p.ID, MaxNameBytes, true},
		{"source", p.Source, MaxNameBytes, false},
		{"difficulty", p.Difficulty, MaxNameBytes, false},
		{"question", p.Question, MaxTextBytes, true},
		{"starter_code", p.StarterCode, MaxTextBytes, false},
		{"entry_point", p.EntryPoint, MaxNameBytes, true},
		{"solution", p.Solution, MaxTextBytes, true},
	} {
		if err := checkText(f.name, f.text, f.limit, f.required); err != nil {
			return err
		}
	}
	if !(p.Atol >= 0 && p.Atol <= 1) {
		return &FieldError{"atol", fmt.Sprintf("is %v, outside 0 to 1", p.Atol)}
	}
	if len(p.Tests) > MaxTests {
		return &FieldError{"tests", fmt.Sprintf("has %d tests, more than %d", len(p.Tests), MaxTests)}
	}
	for i, test := range p.Tests {
		if err := checkText(fmt.Sprintf("tests[%d]", i), test, MaxTestBytes, true); err != nil {
			return err
		}
	}
	if len(p.Buggy) > MaxBuggy {
		return &FieldError{"buggy", fmt.Sprintf("has %d solutions, more than %d", len(p.Buggy), MaxBuggy)}
	}
	for i, b := range p.Buggy {
		name := fmt.Sprintf("buggy[%d]", i)
		if err := checkText(name+".code", b.Code, MaxTextBytes, true); err != nil {
			return err
		}
		if err := checkText(name+".bug_type", b.BugType, MaxNameBytes, false); err != nil {
			return err
		}
	}
	if wrong := (*events.FieldError)(nil); errors.As(events.CheckPredictions("predict", p.Predict), &wrong) {
		return &FieldError{wrong.Field, "is not valid: " + wrong.Reason}
	}
	return nil
}

func checkText(field, text string, limit int, required bool) error {
	switch {
	case required && text == "":
		return &FieldError{field, "is missing"}
	case len(text) > limit:
		return &FieldError{field, fmt.Sprintf("is %d bytes, more than %d", len(text), limit)}
	case !utf8.ValidString(text):
		return &FieldError{field, "is not valid UTF-8"}
	default:
		return nil
	}
}
