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
	MaxTestBytes = 1 << 20             // one test
	MaxNameBytes = 512                 // ID, source, entry point, difficulty, bug type
	MaxTests     = 2_000
	MaxBuggy     = 64
)

// ErrInvalid is wrapped by every error of Problem.Validate.
var ErrInvalid = errors.New("invalid problem")

// Problem is one question with its ground truth and golden tests.
type Problem struct {
	ID          string   `json:"id"`
	Source      string   `json:"source"`
	Difficulty  string   `json:"difficulty,omitempty"`
	Question    string   `json:"question"`
	StarterCode string   `json:"starter_code,omitempty"`
	EntryPoint  string   `json:"entry_point"`     // a function's name, or an expression such as Solution().method
	Solution    string   `json:"solution"`        // the ground truth, a whole Python module
	Tests       []string `json:"tests"`           // each one assert or one stand-alone script
	Buggy       []Buggy  `json:"buggy,omitempty"` // wrong solutions that the tests catch
}

// Buggy is a wrong solution of a problem.
type Buggy struct {
	Code    string `json:"code"`
	BugType string `json:"bug_type"`
}

// maxGoldenBytes keeps the golden tests of one event well within its payload,
// which holds the answers and suites of a group too.
const maxGoldenBytes = events.MaxPayloadBytes / 4

// Posable returns what an event says of the problem, with its golden tests or
// without. Tests that are too large for an event are left out and counted.
func (p *Problem) Posable(golden bool) (posable events.Problem, omitted int) {
	posable = events.Problem{ID: p.ID, Question: p.Question, EntryPoint: p.EntryPoint, Solution: p.Solution}
	if !golden {
		return posable, 0
	}
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

// FieldError says which field of a problem is wrong.
type FieldError struct {
	Field  string // as in the JSON form
	Reason string
}

func (e *FieldError) Error() string { return "field " + e.Field + ": " + e.Reason }

// Unwrap lets errors.Is find ErrInvalid.
func (e *FieldError) Unwrap() error { return ErrInvalid }

// Validate checks that what every stage needs is there and within the limits.
// Its errors are of type *FieldError.
func (p *Problem) Validate() error {
	required := map[string]bool{"id": true, "question": true, "entry_point": true, "solution": true}
	fields := []struct {
		name, text string
		limit      int
	}{
		{"id", p.ID, MaxNameBytes},
		{"source", p.Source, MaxNameBytes},
		{"difficulty", p.Difficulty, MaxNameBytes},
		{"question", p.Question, MaxTextBytes},
		{"starter_code", p.StarterCode, MaxTextBytes},
		{"entry_point", p.EntryPoint, MaxNameBytes},
		{"solution", p.Solution, MaxTextBytes},
	}
	for _, f := range fields {
		if required[f.name] && f.text == "" {
			return &FieldError{f.name, "is missing"}
		}
		if err := checkText(f.name, f.text, f.limit); err != nil {
			return err
		}
	}
	if len(p.Tests) > MaxTests {
		return &FieldError{"tests", fmt.Sprintf("has %d tests, more than %d", len(p.Tests), MaxTests)}
	}
	for i, test := range p.Tests {
		name := fmt.Sprintf("tests[%d]", i)
		if test == "" {
			return &FieldError{name, "is empty"}
		}
		if err := checkText(name, test, MaxTestBytes); err != nil {
			return err
		}
	}
	if len(p.Buggy) > MaxBuggy {
		return &FieldError{"buggy", fmt.Sprintf("has %d solutions, more than %d", len(p.Buggy), MaxBuggy)}
	}
	for i, b := range p.Buggy {
		name := fmt.Sprintf("buggy[%d]", i)
		if b.Code == "" {
			return &FieldError{name + ".code", "is missing"}
		}
		if err := checkText(name+".code", b.Code, MaxTextBytes); err != nil {
			return err
		}
		if err := checkText(name+".bug_type", b.BugType, MaxNameBytes); err != nil {
			return err
		}
	}
	return nil
}

func checkText(field, text string, limit int) error {
	if len(text) > limit {
		return &FieldError{field, fmt.Sprintf("is %d bytes, more than %d", len(text), limit)}
	}
	if !utf8.ValidString(text) {
		return &FieldError{field, "is not valid UTF-8"}
	}
	return nil
}
