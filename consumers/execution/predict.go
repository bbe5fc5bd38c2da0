package execution

import (
	"fmt"
	"strings"

	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
)

// maxPredictionBytes bounds the part of an answer to a predict problem that is read.
const maxPredictionBytes = events.MaxTextBytes

// Predictions are the values that an answer to a predict problem must have, by line.
type Predictions [][]literal.Value

// ReadPredictions parses the accepted literals of a predict problem. The error is
// ErrGroundTruth for a text that is no literal, or a value that does not equal itself.
func ReadPredictions(all []events.Prediction) (Predictions, error) {
	p := make(Predictions, len(all))
	for i, prediction := range all {
		for _, text := range prediction.Accepted {
			value, err := literal.Parse(text)
			if err == nil && !literal.SelfEqual(value) {
				err = fmt.Errorf("%w: it does not equal itself", literal.ErrSyntax)
			}
			if err != nil {
				return nil, fmt.Errorf("%w: prediction %d accepts %s: %w", ErrGroundTruth, i+1, sandbox.Clip(text), err)
			}
			p[i] = append(p[i], value)
		}
	}
	return p, nil
}

// Grade compares the lines of an answer with the literals. No text of it is run. A line
// that is left out fails; an answer without a line, or with more lines than there are
// predictions, does not load.
func (p Predictions) Grade(answer string) events.ExecutedAnswer {
	if len(answer) > maxPredictionBytes {
		return events.ExecutedAnswer{LoadError: fmt.Sprintf("the answer has %d bytes, over the limit of %d", len(answer), maxPredictionBytes)}
	}
	var lines []string
	for line := range strings.Lines(answer) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if n := len(lines); n == 0 || n > len(p) {
		return events.ExecutedAnswer{LoadError: fmt.Sprintf("the answer has %d lines with text; want at most %d with a literal each", n, len(p))}
	}
	graded := events.ExecutedAnswer{Loads: true, Golden: make([]events.GoldenVerdict, len(p))}
	for i := range p {
		verdict := &graded.Golden[i]
		*verdict = events.GoldenVerdict{Verdict: events.VerdictFail, Detail: "no such line"}
		if i < len(lines) {
			*verdict = p.grade(i, lines[i])
		}
	}
	return graded
}

func (p Predictions) grade(i int, line string) events.GoldenVerdict {
	stated, err := literal.Parse(line)
	if err != nil {
		return events.GoldenVerdict{Verdict: events.VerdictFail, Detail: sandbox.Clip(err.Error())}
	}
	for _, value := range p[i] {
		if literal.Equal(stated, value) {
			return events.GoldenVerdict{Verdict: events.VerdictPass}
		}
	}
	return events.GoldenVerdict{Verdict: events.VerdictFail, Detail: "another value: " + sandbox.Clip(line)}
}

// predict grades a group of a predict problem, without a sandbox.
func predict(in *events.TestsSampled) (*events.CodeExecuted, error) {
	problem := &in.Posed.Problem
	predictions, err := ReadPredictions(problem.Predict)
	if err != nil {
		return nil, fmt.Errorf("problem %s: %w", problem.ID, err)
	}
	out := &events.CodeExecuted{
		Plan: in.Posed.Plan, ProblemID: problem.ID, CodeVersion: in.CodeVersion, TestVersion: in.Version, Given: len(in.Posed.Given) > 0,
	}
	for _, prediction := range problem.Predict {
		out.Predict = append(out.Predict, prediction.Kind)
	}
	for _, code := range in.Codes {
		out.Answers = append(out.Answers, predictions.Grade(code))
	}
	return out, nil
}
