package minipy

import "strings"

// characters holds boxed one-character strings, as smallInts holds ints.
var characters = func() (boxed [256]Value) {
	for i := range boxed {
		boxed[i] = Str([]byte{byte(i)})
	}
	return boxed
}()

// unordered returns the items of an iterable to a reader that does not mind
// their order.
func unordered(v Value) ([]Value, error) {
	if set, ok := v.(Set); ok {
		return set, nil
	}
	return iterate(v)
}

// iterate returns the items of an iterable in order.
func iterate(v Value) ([]Value, error) {
	switch v := v.(type) {
	case Set:
		return nil, ErrSetOrder
	case List:
		return v, nil
	case Stream:
		return v, nil
	case Str:
		items := make([]Value, len(v))
		for i := range len(v) {
			items[i] = characters[v[i]]
		}
		return items, nil
	default:
		return nil, ErrType
	}
}

// sequence returns the items of a value that has them by index.
func sequence(v Value) ([]Value, error) {
	switch v.(type) {
	case List, Str:
		return iterate(v)
	default:
		return nil, ErrType
	}
}

func binary(op string, left, right Value) (Value, error) {
	a, aInt := number(left)
	b, bInt := number(right)
	switch {
	case aInt && bInt:
		return arithmetic(op, a, b)
	case op == "*" && bInt:
		return repeat(left, b)
	case op == "*" && aInt:
		return repeat(right, a)
	case op != "+":
		return nil, ErrType
	}
	switch l := left.(type) {
	case Str:
		if r, ok := right.(Str); ok && len(l)+len(r) <= maxItems {
			return l + r, nil
		}
	case List:
		if r, ok := right.(List); ok && len(l)+len(r) <= maxItems {
			return append(append(make(List, 0, len(l)+len(r)), l...), r...), nil
		}
	}
	return nil, ErrType
}

func arithmetic(op string, a, b int) (Value, error) {
	var n int
	switch op {
	case "+":
		n = a + b
	case "-":
		n = a - b
	case "*":
		n = a * b
	case "//", "%":
		if b == 0 {
			return nil, ErrZeroDivision
		}
		quotient, remainder := a/b, a%b
		if remainder != 0 && (remainder < 0) != (b < 0) { // Python floors
			quotient, remainder = quotient-1, remainder+b
		}
		n = remainder
		if op == "//" {
			n = quotient
		}
	}
	if n > maxInt || n < -maxInt {
		return nil, ErrOverflow
	}
	return intValue(n), nil
}

func repeat(v Value, times int) (Value, error) {
	times = max(times, 0)
	switch v := v.(type) {
	case Str:
		if len(v)*times > maxItems {
			return nil, ErrOverflow
		}
		return Str(strings.Repeat(string(v), times)), nil
	case List:
		if len(v)*times > maxItems {
			return nil, ErrOverflow
		}
		items := make(List, 0, len(v)*times)
		for range times {
			items = append(items, v...)
		}
		return items, nil
	default:
		return nil, ErrType
	}
}

func compare(op string, left, right Value) (Value, error) {
	switch op {
	case "==":
		return Bool(Equal(left, right)), nil
	case "!=":
		return Bool(!Equal(left, right)), nil
	case "in", "not in":
		found, err := member(left, right)
		return Bool(found == (op == "in")), err
	}
	order, err := ordering(left, right)
	if err != nil {
		return nil, err
	}
	switch op {
	case "<":
		return Bool(order < 0), nil
	case "<=":
		return Bool(order <= 0), nil
	case ">":
		return Bool(order > 0), nil
	default:
		return Bool(order >= 0), nil
	}
}

func member(v, container Value) (bool, error) {
	if s, ok := container.(Str); ok {
		part, ok := v.(Str)
		if !ok {
			return false, ErrType
		}
		return strings.Contains(string(s), string(part)), nil
	}
	items, err := unordered(container)
	if err != nil {
		return false, err
	}
	return contains(items, v), nil
}

// ordering compares ints with ints, strings with strings and lists with lists.
func ordering(left, right Value) (int, error) {
	a, aInt := number(left)
	b, bInt := number(right)
	if aInt && bInt {
		return a - b, nil
	}
	switch l := left.(type) {
	case Str:
		if r, ok := right.(Str); ok {
			return strings.Compare(string(l), string(r)), nil
		}
	case List:
		r, ok := right.(List)
		if !ok {
			break
		}
		for i := range min(len(l), len(r)) {
			if !Equal(l[i], r[i]) {
				return ordering(l[i], r[i])
			}
		}
		return len(l) - len(r), nil
	}
	return 0, ErrType
}

func index(receiver, at Value) (Value, error) {
	items, err := sequence(receiver)
	if err != nil {
		return nil, err
	}
	i, ok := number(at)
	if !ok {
		return nil, ErrType
	}
	if i < 0 {
		i += len(items)
	}
	if i < 0 || i >= len(items) {
		return nil, ErrIndex
	}
	return items[i], nil
}

// slice evaluates receiver[low:high:step] with Python's clamping.
func (m *machine) slice(n *Node) (Value, error) {
	receiver, err := m.eval(n.Kids[0])
	if err != nil {
		return nil, err
	}
	items, err := sequence(receiver)
	if err != nil {
		return nil, err
	}
	step := 1
	if n.Kids[3] != nil {
		if step, err = m.evalInt(n.Kids[3]); err != nil {
			return nil, err
		}
		if step == 0 {
			return nil, ErrValue
		}
	}
	first, last := 0, len(items) // the range that the clamped bounds may take
	low, high := 0, len(items)
	if step < 0 {
		first, last = -1, len(items)-1
		low, high = last, first
	}
	for i, bound := range []*int{&low, &high} {
		if n.Kids[1+i] == nil {
			continue
		}
		at, err := m.evalInt(n.Kids[1+i])
		if err != nil {
			return nil, err
		}
		if at < 0 {
			at += len(items)
		}
		*bound = min(max(at, first), last)
	}
	picked := make(List, 0, len(items))
	for i := low; step > 0 && i < high || step < 0 && i > high; i += step {
		picked = append(picked, items[i])
	}
	if _, ok := receiver.(Str); ok {
		return join("", picked)
	}
	return picked, nil
}

func (m *machine) evalInt(n *Node) (int, error) {
	v, err := m.eval(n)
	if err != nil {
		return 0, err
	}
	i, ok := number(v)
	if !ok {
		return 0, ErrType
	}
	return i, nil
}

func join(separator string, items []Value) (Value, error) {
	parts := make([]string, len(items))
	for i, item := range items {
		s, ok := item.(Str)
		if !ok {
			return nil, ErrType
		}
		parts[i] = string(s)
	}
	return Str(strings.Join(parts, separator)), nil
}
