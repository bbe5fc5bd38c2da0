package evaluation

import (
	"errors"
	"fmt"

	"codea1/events"
)

// Item is one held-out problem.
type Item struct {
	Problem events.Problem // with the golden tests or predictions that decide whether an answer is correct
	Buggy   []string       // programs that load and fail a golden test, shown to the Test LLM
}

// maxBuggy bounds the defective programs of a problem that the Test LLM sees.
const maxBuggy = 2

// Config holds the settings of an evaluation. Counts are per problem.
type Config struct {
	Answers     int     // k of avg@k: answers of the Code LLM; 0 to leave it out
	OnAnswers   int     // suites per sampled answer
	Suites      int     // suites per defective program; 0 to leave the Test LLM out
	Tests       int     // K: tests wanted per suite
	Rounds      bool    // a suite about a given program is a conversation of K rounds
	Temperature float64 // of both roles
	CodeTokens  int     // most tokens of an answer
	TestTokens  int     // most tokens of a suite
}

// ErrNoGolden is returned for a problem without golden tests.
var ErrNoGolden = errors.New("the problem has no golden tests")

// Groups returns the groups of one evaluation in the order of their slots. Each
// problem has up to two groups. In the first, the Code LLM samples the answers,
// and the Test LLM OnAnswers suites for each. In the second, the answers are the problem's
// defective programs, and the Test LLM samples suites for them; a problem
// without defective programs has no second group. Every plan holds the number of
// groups of the evaluation, so that each reader can tell when it is complete.
//
// The caller sets step, policy versions and seed.
func Groups(tag string, items []Item, config Config) ([]events.ProblemPosed, error) {
	var groups []events.ProblemPosed
	for i := range items {
		item := &items[i]
		if len(item.Problem.Golden)+len(item.Problem.Predict) == 0 {
			return nil, fmt.Errorf("evaluation %s: problem %s: %w", tag, item.Problem.ID, ErrNoGolden)
		}
		plan := events.Plan{
			Purpose: events.PurposeEval, Tag: tag, Temperature: config.Temperature,
			CodeTokens: config.CodeTokens, TestTokens: config.TestTokens,
		}
		if config.Answers > 0 {
			sampled := plan
			sampled.Answers = config.Answers
			if config.OnAnswers > 0 {
				sampled.Suites, sampled.Tests = config.OnAnswers, config.Tests
			}
			groups = append(groups, events.ProblemPosed{Plan: sampled, Problem: item.Problem})
		}
		if given := item.Buggy[:min(len(item.Buggy), maxBuggy)]; len(given) > 0 && config.Suites > 0 {
			judged := plan
			judged.Answers, judged.Suites, judged.Tests, judged.Rounds = len(given), config.Suites, config.Tests, config.Rounds
			groups = append(groups, events.ProblemPosed{Plan: judged, Problem: item.Problem, Given: given})
		}
	}
	for slot := range groups {
		g := &groups[slot]
		g.Plan.Slot, g.Plan.Groups = slot, len(groups)
		if err := g.Validate(); err != nil {
			return nil, fmt.Errorf("evaluation %s: problem %s: %w", tag, g.Problem.ID, err)
		}
	}
	return groups, nil
}

// MostTokens returns the most tokens that the groups of an evaluation sample.
func MostTokens(groups []events.ProblemPosed) int64 {
	tokens := 0
	for i := range groups {
		p := &groups[i].Plan
		tokens += p.Answers * p.Suites * p.TestTokens
		if len(groups[i].Given) == 0 {
			tokens += p.Answers * p.CodeTokens
		}
	}
	return int64(tokens)
}
