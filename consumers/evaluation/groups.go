package evaluation

import (
	"errors"
	"fmt"

	"codea1/events"
)

// Item is one held-out problem.
type Item struct {
	Problem events.Problem // with its golden tests: they say what is correct
	Buggy   []string       // programs that load and fail a golden test, for the Test LLM to see through
}

// Config says how a held-out problem is sampled. Counts are per problem.
type Config struct {
	Answers     int     // k of avg@k: answers the Code LLM samples; 0 to leave it out
	Buggy       int     // defective programs shown to the Test LLM, at most; 0 to leave it out
	Suites      int     // suites per defective program
	Tests       int     // K: tests wanted per suite
	Temperature float64 // of both roles
	CodeTokens  int     // most tokens of an answer
	TestTokens  int     // most tokens of a suite
}

// DefaultConfig returns avg@8 and four suites on each of two defective
// programs, at the temperature of training.
func DefaultConfig() Config {
	return Config{Answers: 8, Buggy: 2, Suites: 4, Tests: 8, Temperature: 1, CodeTokens: 2048, TestTokens: 2048}
}

// ErrNoGolden is returned for a problem that no golden test can judge.
var ErrNoGolden = errors.New("the problem has no golden tests")

// Groups returns the groups of one evaluation in the order of their slots:
// per problem one group whose answers the Code LLM samples, without suites,
// and one whose answers are the problem's defective programs, with suites the
// Test LLM writes for them. A problem without defective programs has no second
// group. Slots are dense over the whole evaluation and every plan says how
// many groups there are, so that anyone can tell when it is complete.
//
// Step, policy versions and seed are left to whoever poses the groups.
func Groups(tag string, items []Item, config Config) ([]events.ProblemPosed, error) {
	var groups []events.ProblemPosed
	for i := range items {
		item := &items[i]
		if len(item.Problem.Golden) == 0 {
			return nil, fmt.Errorf("evaluation %s: problem %s: %w", tag, item.Problem.ID, ErrNoGolden)
		}
		plan := events.Plan{
			Purpose: events.PurposeEval, Tag: tag, Temperature: config.Temperature,
			CodeTokens: config.CodeTokens, TestTokens: config.TestTokens,
		}
		if config.Answers > 0 {
			sampled := plan
			sampled.Answers = config.Answers
			groups = append(groups, events.ProblemPosed{Plan: sampled, Problem: item.Problem})
		}
		if given := item.Buggy[:min(len(item.Buggy), config.Buggy)]; len(given) > 0 && config.Suites > 0 {
			judged := plan
			judged.Answers, judged.Suites, judged.Tests = len(given), config.Suites, config.Tests
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
