package curriculum

import "fmt"

// Config is the schedule of a run.
type Config struct {
	Steps           int    // training steps; see StepsFor for whole epochs
	ProblemsPerStep int    // problems of one step
	Seed            uint64 // of shuffling and of all sampling
	MaxStaleness    int    // steps that rollout may run ahead of training; 0 is synchronous
	Historical      int    // historical tests of a group, at most; 0 for none
	EvalEvery       int    // steps between evaluations, besides the first and the last one; 0 for none

	Answers     int     // M
	Suites      int     // N
	Tests       int     // K
	Temperature float64 // of both roles
	CodeTokens  int     // most tokens of an answer
	TestTokens  int     // most tokens of a suite
	Golden      bool    // pose groups with golden tests, for a recipe that needs them
}

// Limits of a schedule.
const (
	MaxSteps           = 10_000_000
	MaxProblemsPerStep = 10_000
	MaxStaleness       = 64
)

// Validate checks the schedule against the number of training problems.
func (c *Config) Validate(problems int) error {
	for _, f := range []struct {
		name               string
		value, least, most int
	}{
		{"steps", c.Steps, 0, MaxSteps},
		{"problems per step", c.ProblemsPerStep, 1, MaxProblemsPerStep},
		{"max staleness", c.MaxStaleness, 0, MaxStaleness},
		{"historical tests", c.Historical, 0, 1000},
		{"eval every", c.EvalEvery, 0, MaxSteps},
	} {
		if f.value < f.least || f.value > f.most {
			return fmt.Errorf("curriculum: %s is %d; want %d to %d", f.name, f.value, f.least, f.most)
		}
	}
	if problems < c.ProblemsPerStep {
		return fmt.Errorf("curriculum: the problem set has %d problems, fewer than the %d of one step; lower --problems-per-step", problems, c.ProblemsPerStep)
	}
	return nil
}

// StepsFor returns the number of steps of whole epochs. As in the paper's data
// loader, an epoch does not pose the problems that are too few for a last step;
// the next epoch shuffles all of them again.
func StepsFor(problems, problemsPerStep, epochs int) int {
	return epochs * (problems / problemsPerStep)
}
