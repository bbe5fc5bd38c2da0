package curriculum

import (
	"fmt"

	"codea1/events"
)

// Book is what the curriculum asks of the Mistake Book: the k most frequent
// tests of a problem, ties in insertion order.
type Book interface {
	Top(problemID string, k int) []events.HistoricalTest
}

// Evaluation returns the groups of one evaluation; nil for none. The
// curriculum fills in step, versions and seeds.
type Evaluation func(tag string) []events.ProblemPosed

// Tag names the evaluation of the policies after the given number of steps.
func Tag(steps int) string { return fmt.Sprintf("step%06d", steps) }

// Curriculum is the state of a run as far as posing goes. It is not safe for
// concurrent use.
type Curriculum struct {
	config     Config
	problems   []events.Problem
	book       Book
	evaluation Evaluation
	order      order

	versions map[events.Role]int // newest policy version seen
	posed    map[string]bool     // open groups that the log holds or that Due returned
	ended    map[string]bool     // evaluation groups that were scored, and groups that were dropped
	next     int                 // next step to pose
	last     int                 // last step to pose
	ending   bool                // whether End was called
	evals    map[string][]string // tag -> groups, for evaluations that have begun
	finished bool
}

// New makes the curriculum of a run that has not begun. The problems' order
// matters: it must be the same whenever the run is resumed.
func New(config Config, problems []events.Problem, book Book, evaluation Evaluation) (*Curriculum, error) {
	if err := config.Validate(len(problems)); err != nil {
		return nil, err
	}
	return &Curriculum{
		config: config, problems: problems, book: book, evaluation: evaluation,
		order:    order{problems: len(problems), perStep: config.ProblemsPerStep, seed: config.Seed},
		versions: map[events.Role]int{},
		posed:    map[string]bool{}, ended: map[string]bool{}, evals: map[string][]string{},
		next: 1, last: config.Steps,
	}, nil
}

// ObservePosed folds in that a group was posed.
func (c *Curriculum) ObservePosed(group string) { c.posed[group] = true }

// ObserveEnded folds in that a group was scored or dropped. Training groups
// need not be observed: a new policy version says that they ended.
func (c *Curriculum) ObserveEnded(group string) { c.ended[group] = true }

// ObservePolicy folds in that a role has a new policy version.
func (c *Curriculum) ObservePolicy(role events.Role, version int) {
	c.versions[role] = max(c.versions[role], version)
}

// Trained returns the last step that both roles have trained on.
func (c *Curriculum) Trained() int {
	return min(c.versions[events.RoleCode], c.versions[events.RoleTest])
}

// End makes the newest step that has begun the last one: it is trained and
// evaluated, and none follows. It holds for this Curriculum only: one that
// observes the same log goes on as planned, after the evaluation that has begun.
func (c *Curriculum) End() {
	if !c.ending {
		c.ending, c.last = true, min(c.last, c.begun())
	}
}

// begun returns the newest step of which a group was posed.
func (c *Curriculum) begun() int {
	step := max(c.next-1, c.Trained())
	for ; ; step++ {
		plan := events.Plan{Purpose: events.PurposeTrain, Step: step + 1}
		for plan.Slot < c.config.ProblemsPerStep && !c.posed[plan.GroupID()] {
			plan.Slot++
		}
		if plan.Slot == c.config.ProblemsPerStep {
			return step
		}
	}
}

// Finished reports whether every step to the last one is trained and every
// evaluation is complete. It is set by Due.
func (c *Curriculum) Finished() bool { return c.finished }

// Due returns the groups to pose now, in order. Each group is returned once;
// after a restart those the log does not hold are returned again, under the
// same names.
func (c *Curriculum) Due() []events.ProblemPosed {
	var due []events.ProblemPosed
	for !c.finished {
		groups, done := c.evaluate(c.next - 1)
		due = append(due, groups...)
		if !done {
			return due
		}
		if c.next > c.last {
			c.finished = true
			return due
		}
		if c.Trained() < c.next-1-c.config.MaxStaleness {
			return due
		}
		due = append(due, c.pose(c.next)...)
		c.forget(c.next - 2 - c.config.MaxStaleness)
		c.next++
	}
	return due
}

// evaluate opens the evaluation that follows the given number of steps, if
// there is one, and reports whether training may go on. An evaluation waits
// until exactly those steps are trained, and training waits for it.
func (c *Curriculum) evaluate(steps int) (due []events.ProblemPosed, done bool) {
	last := steps == c.last
	tag := Tag(steps)
	if c.evaluation == nil || !last && !c.scheduled(steps) && !c.posed[firstOf(tag)] {
		// Past the last step training is done once both roles have trained it.
		return nil, !last || c.Trained() >= steps
	}
	if c.Trained() < steps {
		return nil, false
	}
	if _, begun := c.evals[tag]; !begun {
		groups := []string{}
		for _, p := range c.evaluation(tag) {
			p.Plan.Purpose, p.Plan.Tag, p.Plan.Step = events.PurposeEval, tag, steps
			p.Plan.CodeVersion, p.Plan.TestVersion = steps, steps
			id := p.Plan.GroupID()
			// One seed for all evaluations: before and after differ by the
			// weights, not by the luck of the draw.
			p.Plan.Seed = groupSeed(c.config.Seed, fmt.Sprintf("eval-%d", p.Plan.Slot))
			groups = append(groups, id)
			if !c.posed[id] {
				c.posed[id] = true
				due = append(due, p)
			}
		}
		c.evals[tag] = groups
	}
	for _, id := range c.evals[tag] {
		if !c.ended[id] {
			return due, false
		}
	}
	return due, true
}

// scheduled reports whether the run plans to evaluate after so many steps,
// besides the last one. One that ended early has another evaluation, which the
// log knows to have begun.
func (c *Curriculum) scheduled(steps int) bool {
	return steps == 0 || c.config.EvalEvery > 0 && steps%c.config.EvalEvery == 0
}

// firstOf names the group of an evaluation that is posed first.
func firstOf(tag string) string {
	plan := events.Plan{Purpose: events.PurposeEval, Tag: tag}
	return plan.GroupID()
}

func (c *Curriculum) pose(step int) []events.ProblemPosed {
	var due []events.ProblemPosed
	version := max(0, step-1-c.config.MaxStaleness)
	for slot := range c.config.ProblemsPerStep {
		epoch, index := c.order.at(step, slot)
		plan := events.Plan{
			Purpose: events.PurposeTrain, Step: step, Epoch: epoch, Slot: slot, Groups: c.config.ProblemsPerStep,
			CodeVersion: version, TestVersion: version,
			Answers: c.config.Answers, Suites: c.config.Suites, Tests: c.config.Tests,
			Temperature: c.config.Temperature, CodeTokens: c.config.CodeTokens, TestTokens: c.config.TestTokens,
		}
		id := plan.GroupID()
		plan.Seed = groupSeed(c.config.Seed, id)
		if c.posed[id] {
			continue
		}
		c.posed[id] = true
		problem := c.problems[index]
		if !c.config.Golden {
			problem.Golden = nil
		}
		due = append(due, events.ProblemPosed{Plan: plan, Problem: problem, Historical: c.book.Top(problem.ID, c.config.Historical)})
	}
	return due
}

// forget drops the names of a step's groups, which nothing asks for again, so
// that a long run does not grow.
func (c *Curriculum) forget(step int) {
	if step < 1 {
		return
	}
	for slot := range c.config.ProblemsPerStep {
		plan := events.Plan{Purpose: events.PurposeTrain, Step: step, Slot: slot}
		delete(c.posed, plan.GroupID())
		delete(c.ended, plan.GroupID())
	}
}
