package curriculum

import (
	"fmt"

	"codea1/events"
)

// Book is the part of the Mistake Book that the curriculum needs. Top returns the
// k most frequent tests of a problem, ties in insertion order.
type Book interface {
	Top(problemID string, k int) []events.HistoricalTest
}

// Evaluation returns the groups of one evaluation; a nil Evaluation means that
// there is none. The curriculum sets step, versions and seeds.
type Evaluation func(tag string) []events.ProblemPosed

// Tag names the evaluation of the policies after the given number of steps.
func Tag(steps int) string { return fmt.Sprintf("step%06d", steps) }

// Curriculum decides which groups a run poses next. It is not safe for
// concurrent use.
type Curriculum struct {
	config     Config
	problems   []events.Problem
	book       Book
	evaluation Evaluation
	order      order

	versions map[events.Role]int // newest policy version seen
	posed    map[string]bool     // groups in the log or returned by Due, without those of trained steps
	ended    map[string]bool     // scored evaluation groups and dropped groups
	next     int                 // next step to pose
	last     int                 // last step to pose
	ending   bool                // whether End was called
	evals    map[string][]string // the groups of the evaluations that have begun, by tag
	finished bool
}

// New returns the curriculum of a run that has not begun. The order of the
// problems must be the same whenever the run is resumed.
func New(config Config, problems []events.Problem, book Book, evaluation Evaluation) (*Curriculum, error) {
	if err := config.validate(len(problems)); err != nil {
		return nil, err
	}
	return &Curriculum{
		config: config, problems: problems, book: book, evaluation: evaluation,
		order:    order{problems: len(problems), perStep: config.ProblemsPerStep, seed: config.Seed},
		versions: map[events.Role]int{},
		posed:    map[string]bool{}, ended: map[string]bool{}, evals: map[string][]string{},
		next: 1, last: config.PlannedSteps(len(problems)),
	}, nil
}

// ObservePosed records that a group was posed.
func (c *Curriculum) ObservePosed(group string) { c.posed[group] = true }

// ObserveEnded records that a group was scored or dropped. Training groups need
// not be observed: a new policy version implies that they ended.
func (c *Curriculum) ObserveEnded(group string) { c.ended[group] = true }

// ObservePolicy records that a role has a new policy version.
func (c *Curriculum) ObservePolicy(role events.Role, version int) {
	c.versions[role] = max(c.versions[role], version)
}

// Trained returns the last step that every model was trained on.
func (c *Curriculum) Trained() int { return c.config.Models.Trained(c.versions) }

// End makes the newest step that has begun the last one. That step is trained
// and evaluated; none follows. End applies to this Curriculum only: another one
// that observes the same log continues as planned after the open evaluation.
func (c *Curriculum) End() {
	if !c.ending {
		c.ending, c.last = true, min(c.last, c.begun())
	}
}

// begun returns the newest step with a posed group.
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

// Due returns the groups to pose now, in order. It returns each group once. After
// a restart it returns the groups again that are not in the log, under the same
// names.
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

// evaluate returns the due groups of the evaluation after the given number of
// steps, if there is one, and reports whether training may continue. An
// evaluation waits until exactly those steps are trained, and training waits for
// the evaluation.
func (c *Curriculum) evaluate(steps int) (due []events.ProblemPosed, done bool) {
	last := steps == c.last
	tag := Tag(steps)
	if c.evaluation == nil || !last && !c.scheduled(steps) && !c.posed[firstOf(tag)] {
		// After the last step, training is done once both roles have trained it.
		return nil, !last || c.Trained() >= steps
	}
	if c.Trained() < steps {
		return nil, false
	}
	if _, begun := c.evals[tag]; !begun {
		groups := []string{}
		for _, p := range c.evaluation(tag) {
			p.Plan.Purpose, p.Plan.Tag, p.Plan.Step = events.PurposeEval, tag, steps
			p.Plan.CodeVersion, p.Plan.TestVersion = c.config.Models.Version(events.RoleCode, steps), c.config.Models.Version(events.RoleTest, steps)
			id := p.Plan.GroupID()
			// All evaluations have the same seeds, so that they differ by the
			// weights only.
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

// scheduled reports whether the run plans an evaluation after so many steps,
// apart from the one after the last step. An attempt that ended early has one
// more evaluation; the log shows that it has begun.
func (c *Curriculum) scheduled(steps int) bool {
	return steps == 0 || c.config.EvalEvery > 0 && steps%c.config.EvalEvery == 0
}

// firstOf returns the group of an evaluation that is posed first.
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
			CodeVersion: c.config.Models.Version(events.RoleCode, version), TestVersion: c.config.Models.Version(events.RoleTest, version),
			Answers: c.config.Answers, Suites: c.config.Suites, Tests: c.config.Tests,
			Temperature: c.config.Temperature, CodeTokens: c.config.CodeTokens, TestTokens: c.config.TestTokens,
			Cross: c.config.Cross, Probes: c.config.Probes, Judges: c.config.Judges,
		}
		if c.config.Models.WithoutTest() {
			plan.Suites, plan.Tests, plan.TestTokens = 0, 0, 0
		}
		id := plan.GroupID()
		plan.Seed = groupSeed(c.config.Seed, id)
		if c.posed[id] {
			continue
		}
		c.posed[id] = true
		problem := c.problems[index]
		if !c.config.Golden {
			problem.Golden, problem.Atol = nil, 0
		}
		due = append(due, events.ProblemPosed{Plan: plan, Problem: problem, Historical: c.book.Top(problem.ID, c.config.Historical)})
	}
	return due
}

// forget deletes the groups of a step that is not needed again. Otherwise the
// memory of a long run would grow.
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
