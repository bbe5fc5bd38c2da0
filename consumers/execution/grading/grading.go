package grading

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"codea1/consumers/execution"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
	"codea1/events/files"
)

// maxLineBytes bounds a line of a file of problems, answers or grades.
const maxLineBytes = 64 << 20

// ErrLine is returned for a line over its limit.
var ErrLine = errors.New("a line is too long")

// Problem is a row of a problem file with the fields that grading needs.
type Problem struct {
	ID         string   `json:"id"`
	EntryPoint string   `json:"entry_point"`
	Solution   string   `json:"solution"` // the ground truth; empty: unknown
	Tests      []string `json:"tests"`
	Atol       float64  `json:"atol"` // tolerance of numbers in tests of the form assert CALL == LITERAL

	// Predict of a predict problem; its answers are no programs.
	Predict []events.Prediction `json:"predict"`

	// Make plans the tests before the first answer is graded; nil: Tests has them.
	Make func(context.Context) (*execution.GoldenPlan, error) `json:"-"`
	// StopEarly leaves out the tests after the first that fails, but not the first ones of
	// all: answers vote for the majority with their outcomes.
	StopEarly bool `json:"-"`

	mu   sync.Mutex
	plan *execution.GoldenPlan // nil until an answer needs it
}

// Forget frees the memory of the plan of the tests. The next answer makes it again.
func (p *Problem) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan = nil
}

// votingTests is how many tests an answer runs at least. They tell wrong answers apart, which
// also differ in their first failed test.
const votingTests = 16

// Answer is a row of an answer file. An ID may come any number of times.
type Answer struct {
	ID   string `json:"id"`
	Code string `json:"code"`
}

// Grade is the result of a problem's tests for one answer.
type Grade struct {
	ID        string                 `json:"id"`
	Answer    int                    `json:"answer"`            // counts the answers of this ID from 0
	Code      string                 `json:"code_sha256"`       // of the answer's code
	Loads     bool                   `json:"loads"`             //
	LoadError string                 `json:"load_error"`        // empty if it loads
	Passed    int                    `json:"passed"`            // tests
	PassRate  float64                `json:"pass_rate"`         // 0 to 1
	Verdicts  []events.GoldenVerdict `json:"verdicts"`          // one per test
	Failure   string                 `json:"failure,omitempty"` // a failure of the sandbox: nothing is known of the answer
}

// Solved reports whether every test passed.
func (g *Grade) Solved() bool {
	return g.Failure == "" && len(g.Verdicts) > 0 && g.Passed == len(g.Verdicts)
}

// CodeHash returns the hash of an answer's code in a grade.
func CodeHash(code string) string {
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:])
}

// ReadLines calls row with each line of a JSONL file, gzipped or not. Its error
// names the line.
func ReadLines(path string, row func(line []byte) error) error {
	return ReadFile(path, func(in io.Reader) error { return readLines(path, in, row) })
}

// ReadFile calls use with the content of a file, gzipped or not.
func ReadFile(path string, use func(in io.Reader) error) error {
	file, err := files.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	buffered := bufio.NewReader(file)
	var in io.Reader = buffered
	if magic, err := buffered.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		if in, err = gzip.NewReader(buffered); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return use(in)
}

func readLines(path string, in io.Reader, row func(line []byte) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLineBytes)
	number := 0
	for lines.Scan() {
		number++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := row(lines.Bytes()); err != nil {
			return fmt.Errorf("%s:%d: %w", path, number, err)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("%s:%d: %w: over the limit of %d bytes", path, number+1, ErrLine, maxLineBytes)
	} else if err != nil {
		return fmt.Errorf("%s:%d: %w", path, number+1, err)
	}
	return nil
}

// readProblems returns a file's problems by ID.
func readProblems(path string) (map[string]*Problem, error) {
	problems := map[string]*Problem{}
	err := ReadLines(path, func(line []byte) error {
		p := new(Problem)
		if err := json.Unmarshal(line, p); err != nil {
			return fmt.Errorf("want a JSON object with id, entry_point and tests: %w", err)
		}
		switch {
		case p.ID == "":
			return errors.New("a problem without an id")
		case len(p.Predict) > 0:
			return fmt.Errorf("problem %s is a predict problem, whose answers are not run: evaluate it with codea1 train --preset sft --reward golden --heldout FILE", p.ID)
		case len(p.Tests) == 0:
			return fmt.Errorf("problem %s has no tests", p.ID)
		case problems[p.ID] != nil:
			return fmt.Errorf("problem %s occurs twice", p.ID)
		}
		problems[p.ID] = p
		return nil
	})
	return problems, err
}

// readAnswer decodes a row of an answer file. The error describes the mistake.
func readAnswer(line []byte, problems map[string]*Problem) (Answer, error) {
	var row struct {
		ID   *string `json:"id"`
		Code *string `json:"code"`
	}
	err := json.Unmarshal(line, &row)
	switch {
	case err != nil:
		return Answer{}, fmt.Errorf("want a JSON object with id and code: %w", err)
	case row.ID == nil || row.Code == nil:
		return Answer{}, errors.New("want both id and code")
	case problems[*row.ID] == nil:
		return Answer{}, fmt.Errorf("there is no problem %q", *row.ID)
	}
	return Answer{ID: *row.ID, Code: *row.Code}, nil
}

// Grader grades answers in their order, several at a time.
type Grader struct {
	Executor *execution.Executor
	Workers  int // answers that run at a time
	Problems map[string]*Problem

	done   map[string]bool // keys of answers that have a grade already
	counts map[string]int  // answers so far, by ID
}

// NewGrader returns a Grader for answers to problems.
func NewGrader(executor *execution.Executor, workers int, problems map[string]*Problem) *Grader {
	return &Grader{executor, workers, problems, map[string]bool{}, map[string]int{}}
}

// plan returns the plan of a problem's tests, made for its first answer.
func (g *Grader) plan(ctx context.Context, problem *Problem) (*execution.GoldenPlan, error) {
	problem.mu.Lock() // one answer makes the plan, the others wait
	defer problem.mu.Unlock()
	if problem.plan != nil {
		return problem.plan, nil
	}
	making := problem.Make
	if making == nil {
		making = func(ctx context.Context) (*execution.GoldenPlan, error) {
			return g.Executor.PlanGolden(ctx, sandbox.Program{Code: problem.Solution, EntryPoint: problem.EntryPoint}, problem.Tests, problem.Atol)
		}
	}
	plan, err := making(ctx)
	if err != nil {
		return nil, err
	}
	if problem.StopEarly {
		plan.StopEarly(votingTests)
	}
	problem.plan = plan
	return plan, nil
}

// key identifies an answer in its file.
func (g *Grade) key() string { return fmt.Sprintf("%s\x00%d\x00%s", g.ID, g.Answer, g.Code) }

// Run grades each answer of feed and calls emit with the grades in the answers'
// order. The problem of each answer is known.
func (g *Grader) Run(ctx context.Context, feed func(each func(Answer) error) error, emit func(*Grade) error) error {
	group, ctx := errgroup.WithContext(ctx)
	ordered := make(chan chan *Grade, 2*g.Workers)
	var working errgroup.Group
	working.SetLimit(2 * g.Workers) // one runs, one has its tests parsed
	group.Go(func() error {
		defer close(ordered)
		defer func() { _ = working.Wait() }() // its work returns no errors
		return feed(func(answer Answer) error {
			grade := &Grade{ID: answer.ID, Answer: g.counts[answer.ID], Code: CodeHash(answer.Code)}
			g.counts[answer.ID]++
			if g.done[grade.key()] {
				return nil
			}
			result := make(chan *Grade, 1)
			select {
			case ordered <- result:
			case <-ctx.Done():
				return ctx.Err()
			}
			working.Go(func() error {
				g.grade(ctx, g.Problems[answer.ID], answer.Code, grade)
				result <- grade
				return nil
			})
			return nil
		})
	})
	group.Go(func() error {
		for result := range ordered {
			select {
			case grade := <-result:
				if ctx.Err() != nil {
					return ctx.Err() // the grade may be incomplete
				}
				if err := emit(grade); err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	return group.Wait()
}

// grade fills in the results of the problem's tests.
func (g *Grader) grade(ctx context.Context, problem *Problem, code string, grade *Grade) {
	plan, err := g.plan(ctx, problem)
	if err != nil {
		grade.Failure = sandbox.Clip(err.Error())
		return
	}
	report, verdicts, err := g.Executor.GradeWithReport(ctx, sandbox.Program{Code: code, EntryPoint: problem.EntryPoint}, plan)
	if err != nil {
		grade.Failure = sandbox.Clip(err.Error())
		return
	}
	grade.Loads, grade.LoadError, grade.Verdicts = report.Loads, report.LoadError, verdicts
	for _, v := range verdicts {
		if v.Verdict == events.VerdictPass {
			grade.Passed++
		}
	}
	grade.PassRate = float64(grade.Passed) / float64(len(verdicts))
}

// FirstReason says why an answer is not solved.
func (g *Grade) FirstReason() string {
	switch {
	case g.Failure != "":
		return "sandbox: " + g.Failure
	case !g.Loads:
		return "does not load: " + g.LoadError
	}
	for i, v := range g.Verdicts {
		if v.Verdict != events.VerdictPass {
			return strings.TrimSpace(fmt.Sprintf("test %d: %s %s", i, v.Verdict, v.Detail))
		}
	}
	return ""
}
