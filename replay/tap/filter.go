package tap

import (
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"

	"codea1/events"
	"codea1/events/commandline"
)

// filter selects events.
type filter struct {
	start   start
	types   []events.Type // to read: those that the user wants, and the end of a run; empty for all
	wanted  []events.Type
	roles   []events.Role
	groups  []string
	where   *vm.Program // nil for all
	payload bool        // where names the payload
}

// maxWhere bounds the memory of one evaluation of --where, in items.
const maxWhere = 1 << 20

func (c *Command) filter() (*filter, error) {
	if err := c.checkTypes(); err != nil {
		return nil, err
	}
	f := &filter{wanted: c.Type, roles: c.Role, groups: c.Group}
	if len(c.Type) > 0 {
		f.types = append(slices.Clone(c.Type), events.TypeRunFinished)
	}
	var err error
	if f.start, err = parseStart(c.From); err != nil || c.Where == "" {
		return f, err
	}
	f.payload = strings.Contains(c.Where, "payload")
	if f.where, err = expr.Compile(c.Where, expr.Env(factNames), expr.AsBool()); err != nil {
		reason, _, _ := strings.Cut(err.Error(), "\n") // without the picture of the place
		return nil, commandline.Wrong(fmt.Errorf("--where: %s; the names are %s", reason, names()))
	}
	return f, nil
}

// matches reports whether an event is selected. An expression that cannot be computed
// for an event, because its payload lacks a field, does not select it.
func (f *filter) matches(e *events.Event) bool {
	if len(f.wanted) > 0 && !slices.Contains(f.wanted, e.Type) || len(f.groups) > 0 && !slices.Contains(f.groups, e.Group) ||
		e.Time.Before(f.start.since) {
		return false
	}
	if len(f.roles) == 0 && f.where == nil {
		return true
	}
	facts := factsOf(e)
	if len(f.roles) > 0 && !slices.Contains(f.roles, events.Role(facts.role)) {
		return false
	}
	if f.where == nil {
		return true
	}
	machine := vm.VM{MemoryBudget: maxWhere}
	is, err := machine.Run(f.where, facts.env(e, f.payload))
	return err == nil && is.(bool)
}
