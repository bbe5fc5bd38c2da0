package gpuworker

import (
	"fmt"

	"codea1/events"
)

// maxOpenGroups bounds what a collector holds. The curriculum's staleness bound
// keeps far below it; only a misconfigured run comes near.
const maxOpenGroups = 1 << 16

// collector gathers what one role learns from, step by step, out of the events
// of a run. It is pure: the same events give the same steps, in whatever order
// the groups of a step arrive.
type collector struct {
	role    events.Role
	trained int // the last step that was trained; earlier ones are ignored
	steps   map[int]*openStep
	places  map[string]place // of every open group, by name
	read    int              // messages applied
}

type place struct{ step, slot int }

// openStep is a step that is being collected.
type openStep struct {
	groups  int // how many it has; 0 while only a drop without a plan was seen
	slots   map[int]*openGroup
	settled int
	// The position before the step's first message, and how many messages had
	// been read there: positions themselves cannot be compared.
	from   events.Position
	fromAt int
}

type openGroup struct {
	name        string
	temperature float64
	rollout     *rollout
	rewards     *events.GroupRewarded
	settled     bool
	lost        string // why nothing can be learnt from the group
}

// rollout is what was sampled for a group in the collector's role: one row for
// role code, one row per answer for role test. Texts are not kept.
type rollout struct {
	version int
	prompts []events.Int32s
	rows    [][]events.Completion
}

func newCollector(role events.Role, trained int) *collector {
	return &collector{role: role, trained: trained, steps: map[int]*openStep{}, places: map[string]place{}}
}

// apply takes in what an event says of a group; before is the position that
// precedes it.
func (c *collector) apply(group string, payload events.Payload, before events.Position) error {
	c.read++
	switch p := payload.(type) {
	case *events.ProblemPosed:
		_, err := c.group(group, &p.Plan, before)
		return err
	case *events.CodeSampled:
		if c.role == events.RoleCode {
			return c.sampled(group, &p.Posed.Plan, before, &rollout{p.Version, []events.Int32s{p.Prompt}, [][]events.Completion{p.Answers}})
		}
	case *events.TestsSampled:
		if c.role == events.RoleTest {
			return c.sampled(group, &p.Posed.Plan, before, &rollout{p.Version, p.Prompts, p.Suites})
		}
	case *events.GroupRewarded:
		g, err := c.group(group, &p.Plan, before)
		if g != nil && g.rewards == nil {
			g.rewards = p
			c.settle(group, g)
		}
		return err
	case *events.GroupDropped:
		return c.dropped(group, p, before)
	}
	return nil
}

// malformed takes in a message that cannot be decoded: its group is lost to
// training, the same way for every reader.
func (c *collector) malformed(envelope *events.Envelope) {
	c.read++
	at, ok := c.places[envelope.Group]
	if !ok {
		return // the stage that should have handled it says so in group.dropped
	}
	c.lose(envelope.Group, c.steps[at.step].slots[at.slot], "malformed "+string(envelope.Type))
}

func (c *collector) sampled(name string, plan *events.Plan, before events.Position, r *rollout) error {
	g, err := c.group(name, plan, before)
	if g == nil || g.rollout != nil {
		return err
	}
	for _, row := range r.rows {
		for i := range row {
			row[i].Text = ""
		}
	}
	g.rollout = r
	c.settle(name, g)
	return nil
}

func (c *collector) dropped(name string, p *events.GroupDropped, before events.Position) error {
	// Where the posed problem itself could not be decoded, this is the first
	// that is seen of the group.
	if _, ok := c.places[name]; !ok {
		if p.Purpose != events.PurposeTrain || p.Step <= c.trained {
			return nil
		}
		if err := c.open(name, p.Step, p.Slot, p.Groups, before); err != nil {
			return err
		}
	}
	at := c.places[name]
	c.lose(name, c.steps[at.step].slots[at.slot], string(p.Reason))
	return nil
}

// group returns the open group of a training plan, opening it at its first
// event; nil for a group that is not trained on, or no longer.
func (c *collector) group(name string, plan *events.Plan, before events.Position) (*openGroup, error) {
	if plan.Purpose != events.PurposeTrain || plan.Step <= c.trained {
		return nil, nil
	}
	if _, ok := c.places[name]; !ok {
		if err := c.open(name, plan.Step, plan.Slot, plan.Groups, before); err != nil {
			return nil, err
		}
	}
	at := c.places[name]
	step := c.steps[at.step]
	if step.groups == 0 {
		step.groups = plan.Groups
	}
	if at != (place{plan.Step, plan.Slot}) || step.groups != plan.Groups {
		return nil, fmt.Errorf("group %s: its plan says step %d, slot %d of %d, others say step %d, slot %d of %d",
			name, plan.Step, plan.Slot, plan.Groups, at.step, at.slot, step.groups)
	}
	g := step.slots[at.slot]
	g.temperature = plan.Temperature
	return g, nil
}

func (c *collector) open(name string, number, slot, groups int, before events.Position) error {
	if len(c.places) >= maxOpenGroups {
		return fmt.Errorf("group %s: %d groups are waiting to be trained on, the limit; is max_staleness too high?", name, maxOpenGroups)
	}
	step := c.steps[number]
	if step == nil {
		step = &openStep{groups: groups, slots: map[int]*openGroup{}, from: before, fromAt: c.read}
		c.steps[number] = step
	}
	if other := step.slots[slot]; other != nil {
		return fmt.Errorf("groups %s and %s both claim slot %d of step %d", other.name, name, slot, number)
	}
	step.slots[slot] = &openGroup{name: name}
	c.places[name] = place{number, slot}
	return nil
}

func (c *collector) lose(name string, g *openGroup, reason string) {
	if g.settled {
		return // the first outcome in the order of reading stands
	}
	g.lost = reason
	c.settle(name, g)
}

// settle counts a group whose outcome is known.
func (c *collector) settle(name string, g *openGroup) {
	if g.settled || g.lost == "" && (g.rollout == nil || g.rewards == nil) {
		return
	}
	g.settled = true
	c.steps[c.places[name].step].settled++
}

// collectedStep is a complete step: its groups in slot order.
type collectedStep struct {
	number int
	groups []*openGroup
}

// next returns the step after the last trained one when every slot of it is
// settled.
func (c *collector) next() (collectedStep, bool) {
	number := c.trained + 1
	step := c.steps[number]
	if step == nil || step.groups == 0 || step.settled < step.groups {
		return collectedStep{}, false
	}
	out := collectedStep{number: number, groups: make([]*openGroup, 0, step.groups)}
	for slot := range step.groups {
		g := step.slots[slot]
		if g == nil || !g.settled {
			return collectedStep{}, false // a drop without a plan has claimed a slot that the step does not have
		}
		out.groups = append(out.groups, g)
	}
	return out, true
}

// finish forgets the step after the last trained one, which now is trained,
// and returns the low-water mark: the position from which every event of the
// steps to come is read again. current is the position after the last message
// applied.
func (c *collector) finish(current events.Position) events.Position {
	c.trained++
	for _, g := range c.steps[c.trained].slots {
		delete(c.places, g.name)
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
