package minipy

import (
	"errors"
	"fmt"
	"sync"
)

// Exception is a Python exception by the name of its class.
type Exception string

func (e Exception) Error() string { return string(e) }

// The exceptions programs of the subset raise.
const (
	ErrType         Exception = "TypeError"
	ErrValue        Exception = "ValueError"
	ErrIndex        Exception = "IndexError"
	ErrName         Exception = "NameError"
	ErrAttribute    Exception = "AttributeError"
	ErrZeroDivision Exception = "ZeroDivisionError"
	ErrOverflow     Exception = "OverflowError"
)

// Calls end with these where Python would go on.
var (
	ErrSteps    = errors.New("minipy: too many steps")
	ErrSetOrder = errors.New("minipy: the result depends on the order of a set")
)

const (
	maxSteps = 100_000
	maxItems = 10_000 // in one list or string
	maxInt   = 1 << 31
)

// Call runs the function. Errors are an Exception that Python would raise too,
// ErrSteps or ErrSetOrder.
func (f *Func) Call(arguments ...Value) (Value, error) {
	if len(arguments) != len(f.Params) {
		return nil, ErrType
	}
	m := machines.Get().(*machine)
	defer machines.Put(m)
	m.names, m.values, m.steps = append(m.names[:0], f.Params...), append(m.values[:0], arguments...), 0
	result, err := m.block(f.Body)
	if err == nil && result == nil {
		result = None{}
	}
	return result, err
}

// machines are reused: sets are made of some hundred thousand short calls.
var machines = sync.Pool{New: func() any { return &machine{} }}

// machine holds the variables of one call, innermost last.
type machine struct {
	names  []string
	values []Value
	steps  int
}

func (m *machine) lookup(name string) (Value, bool) {
	for i := len(m.names) - 1; i >= 0; i-- {
		if m.names[i] == name {
			return m.values[i], true
		}
	}
	return nil, false
}

// declare adds a variable that hides others of its name.
func (m *machine) declare(name string, v Value) {
	m.names, m.values = append(m.names, name), append(m.values, v)
}

func (m *machine) assign(name string, v Value) {
	for i := len(m.names) - 1; i >= 0; i-- {
		if m.names[i] == name {
			m.values[i] = v
			return
		}
	}
	m.declare(name, v)
}

// block runs statements; a nil value means that none of them returned.
func (m *machine) block(block *Node) (Value, error) {
	for _, n := range block.Kids {
		value, err := m.eval(n.Kids[0])
		if err != nil {
			return nil, err
		}
		var result Value
		switch n.Op {
		case OpReturn:
			return value, nil
		case OpAssign:
			m.assign(n.Text, value)
		case OpAddAssign:
			err = m.addAssign(n.Text, value)
		case OpIf:
			if Truthy(value) {
				result, err = m.block(n.Kids[1])
			}
		case OpFor:
			result, err = m.loop(n, value)
		}
		if err != nil || result != nil {
			return result, err
		}
	}
	return nil, nil
}

func (m *machine) addAssign(name string, value Value) error {
	old, ok := m.lookup(name)
	if !ok {
		return ErrName
	}
	sum, err := binary("+", old, value)
	if err != nil {
		return err
	}
	m.assign(name, sum)
	return nil
}

func (m *machine) loop(n *Node, iterable Value) (Value, error) {
	items, err := iterate(iterable)
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		if err := unpack(n.Vars, item, m.assign); err != nil {
			return nil, err
		}
		if result, err := m.block(n.Kids[1]); err != nil || result != nil {
			return result, err
		}
	}
	return nil, nil
}

// unpack hands an item to one variable, or its parts to several.
func unpack(vars []string, item Value, set func(string, Value)) error {
	if len(vars) == 1 {
		set(vars[0], item)
		return nil
	}
	parts, err := iterate(item)
	if err != nil {
		return err
	}
	if len(parts) != len(vars) {
		return ErrValue
	}
	for i, name := range vars {
		set(name, parts[i])
	}
	return nil
}

func (m *machine) eval(n *Node) (Value, error) {
	if m.steps++; m.steps > maxSteps {
		return nil, ErrSteps
	}
	switch n.Op {
	case OpInt:
		return intValue(n.N), nil
	case OpStr:
		return Str(n.Text), nil
	case OpConst:
		switch n.Text {
		case "None":
			return None{}, nil
		default:
			return Bool(n.Text == "True"), nil
		}
	case OpName:
		if v, ok := m.lookup(n.Text); ok {
			return v, nil
		}
		return nil, ErrName
	case OpList:
		items, err := m.all(n.Kids)
		return List(items), err
	case OpComp, OpGen:
		return m.comprehension(n)
	case OpAnd, OpOr:
		left, err := m.eval(n.Kids[0])
		if err != nil || Truthy(left) == (n.Op == OpOr) {
			return left, err
		}
		return m.eval(n.Kids[1])
	case OpTernary:
		condition, err := m.eval(n.Kids[1])
		if err != nil {
			return nil, err
		}
		if Truthy(condition) {
			return m.eval(n.Kids[0])
		}
		return m.eval(n.Kids[2])
	case OpCall:
		return m.call(n)
	case OpSlice:
		return m.slice(n)
	}
	return m.operate(n)
}

// operate evaluates the nodes whose kids are all evaluated first.
func (m *machine) operate(n *Node) (Value, error) {
	left, err := m.eval(n.Kids[0])
	if err != nil {
		return nil, err
	}
	switch n.Op {
	case OpNot:
		return Bool(!Truthy(left)), nil
	case OpNegate:
		v, ok := number(left)
		if !ok {
			return nil, ErrType
		}
		return intValue(-v), nil
	case OpMethod:
		arguments, err := m.all(n.Kids[1:])
		if err != nil {
			return nil, err
		}
		return method(left, n.Text, arguments)
	}
	right, err := m.eval(n.Kids[1])
	if err != nil {
		return nil, err
	}
	switch n.Op {
	case OpBinary:
		return binary(n.Text, left, right)
	case OpCompare:
		return compare(n.Text, left, right)
	case OpIndex:
		return index(left, right)
	default:
		return nil, fmt.Errorf("minipy: op %d is not an expression", n.Op)
	}
}

func (m *machine) all(nodes []*Node) ([]Value, error) {
	values := make([]Value, len(nodes))
	for i, n := range nodes {
		v, err := m.eval(n)
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	return values, nil
}

// comprehension evaluates eagerly. For a generator that any or all would stop
// early, that differs from Python only when a later element raises.
func (m *machine) comprehension(n *Node) (Value, error) {
	iterable, err := m.eval(n.Kids[1])
	if err != nil {
		return nil, err
	}
	items, err := iterate(iterable)
	if err != nil {
		return nil, err
	}
	scope := len(m.names)
	defer func() { m.names, m.values = m.names[:scope], m.values[:scope] }()
	result := make(List, 0, len(items))
	for _, item := range items {
		m.names, m.values = m.names[:scope], m.values[:scope]
		if err := unpack(n.Vars, item, m.declare); err != nil {
			return nil, err
		}
		if n.Kids[2] != nil {
			keep, err := m.eval(n.Kids[2])
			if err != nil {
				return nil, err
			}
			if !Truthy(keep) {
				continue
			}
		}
		v, err := m.eval(n.Kids[0])
		if err != nil {
			return nil, err
		}
		result = append(result, v)
	}
	if n.Op == OpGen {
		return Stream(result), nil
	}
	return result, nil
}
