package gpuworker

import (
	"fmt"

	"codea1/events"
)

// maxOpenGroups limits the groups of a collector. The staleness bound of the
// curriculum keeps their number far below it; only a misconfigured run reaches
// it.
const maxOpenGroups = 1 << 16

// collector collects from the events of a run what one role is trained on, step
// by step. It does no I/O. The same events give the same steps, in whatever order
// the groups of a step arrive.
type collector struct {
	role    events.Role
	shared  bool // the model of role code samples in role test too: both rollouts are collected
	perStep int  // groups of a step; a plan that says otherwise is not the curriculum's
	trained int  // the last trained step; events of earlier steps are ignored
	steps   map[int]*openStep
	groups  map[string]*openGroup // of all open steps, by name
	read    int                   // number of messages applied
}

// openStep is a step that is being collected.
type openStep struct {
	slots   map[int]*openGroup
	settled int
	// from is the position before the step's first message. Positions cannot be
	// compared, so fromAt counts the messages that were read before it.
	from   events.Position
	fromAt int
}

// openGroup is a group of an open step. It is settled when its outcome is known.
type openGroup struct {
	name        string
	step        int
	temperature float64
	rollout     *rollout
	suites      *rollout // of role test, if the model is shared
	rewards     *events.GroupRewarded
	settled     bool
	lost        string // why the group cannot be trained on
}

// rollout holds the completions of a group in the collector's role: one row for
// role code, one row per answer for role test. The texts are not kept.
type rollout struct {
	version int
	prompts []events.Int32s
	rows    [][]events.Completion
}

func newCollector(role events.Role, perStep, trained int) *collector {
	return &collector{role: role, perStep: perStep, trained: trained, steps: map[int]*openStep{}, groups: map[string]*openGroup{}}
}

// apply adds an event of a group. before is the position before the event.
func (c *collector) apply(group string, payload events.Payload, before events.Position) error {
	c.read++
	switch p := payload.(type) {
	case *events.ProblemPosed:
		_, err := c.group(group, &p.Plan, before)
		return err
	case *events.CodeSampled:
		if c.role == events.RoleCode {
			return c.sampled(group, &p.Posed.Plan, before, events.RoleCode, &rollout{p.Version, []events.Int32s{p.Prompt}, [][]events.Completion{p.Answers}})
		}
	case *events.TestsSampled:
		if c.role == events.RoleTest || c.shared {
			return c.sampled(group, &p.Posed.Plan, before, events.RoleTest, &rollout{p.Version, p.Prompts, p.Suites})
		}
	case *events.GroupRewarded:
		g, err := c.group(group, &p.Plan, before)
		if g != nil && g.rewards == nil {
			g.rewards = p
			c.settle(g)
		}
		return err
	case *events.GroupDropped:
		return c.dropped(group, p, before)
	}
	return nil
}

func (c *collector) sampled(name string, plan *events.Plan, before events.Position, role events.Role, r *rollout) error {
	g, err := c.group(name, plan, before)
	if g == nil {
		return err
	}
	into := &g.rollout
	if role != c.role {
		into = &g.suites
	}
	if *into != nil {
		return err
	}
	for _, row := range r.rows {
		for i := range row {
			row[i].Text = ""
		}
	}
	*into = r
	c.settle(g)
	return nil
}

func (c *collector) dropped(name string, p *events.GroupDropped, before events.Position) error {
	// The drop is the group's first event if problem.posed could not be decoded.
	g, err := c.open(name, p.Purpose, p.Step, p.Slot, before)
	if g != nil && !g.settled {
		g.lost = string(p.Reason)
		c.settle(g)
	}
	return err
}

// group returns the open group of a plan, as open does.
func (c *collector) group(name string, plan *events.Plan, before events.Position) (*openGroup, error) {
	g, err := c.open(name, plan.Purpose, plan.Step, plan.Slot, before)
	if g != nil {
		g.temperature = plan.Temperature
	}
	return g, err
}

// open returns an open group. It opens the group at its first event. It returns nil
// if the group is no training group of the run, or its step is trained.
func (c *collector) open(name string, purpose events.Purpose, number, slot int, before events.Position) (*openGroup, error) {
	if g := c.groups[name]; g != nil {
		return g, nil
	}
	if purpose != events.PurposeTrain || number <= c.trained || slot < 0 || slot >= c.perStep {
		return nil, nil
	}
	if len(c.groups) >= maxOpenGroups {
		return nil, fmt.Errorf("group %s: %d groups wait for training, which is the limit; lower max-staleness", name, maxOpenGroups)
	}
	step := c.steps[number]
	if step == nil {
		step = &openStep{slots: map[int]*openGroup{}, from: before, fromAt: c.read}
		c.steps[number] = step
	}
	g := &openGroup{name: name, step: number}
	step.slots[slot], c.groups[name] = g, g
	return g, nil
}

// settle marks a group as settled if its outcome is known.
func (c *collector) settle(g *openGroup) {
	if g.settled || g.lost == "" && (g.rollout == nil || g.rewards == nil || c.shared && g.suites == nil) {
		return
	}
	g.settled = true
	c.steps[g.step].settled++
}

// collectedStep is a complete step with its groups in slot order.
type collectedStep struct {
	number int
	groups []*openGroup
}

// next returns the step after the last trained one if all its slots are settled.
func (c *collector) next() (collectedStep, bool) {
	number := c.trained + 1
	step := c.steps[number]
	if step == nil || step.settled < c.perStep {
		return collectedStep{}, false
	}
	out := collectedStep{number: number, groups: make([]*openGroup, c.perStep)}
	for slot := range out.groups {
		out.groups[slot] = step.slots[slot]
	}
	return out, true
}

// finish marks the next step as trained and forgets it. It returns the low-water
// mark: a trainer that reads from this position reads every event of the later
// steps. current is the position after the last message.
func (c *collector) finish(current events.Position) events.Position {
	c.trained++
	for _, g := range c.steps[c.trained].slots {
		delete(c.groups, g.name)
	}
	delete(c.steps, c.trained)
	low, lowAt := current, c.read+1
	for _, step := range c.steps {
		if step.fromAt < lowAt {
			low, lowAt = step.from, step.fromAt
		}
	}
	return low
}
