package minipy

import (
	"slices"
	"strconv"
	"strings"
)

// call evaluates a call of one of Python's built-in functions.
func (m *machine) call(n *Node) (Value, error) {
	var buffer [4]Value // on the stack: calls are the most of what is evaluated
	arguments := buffer[:0]
	options := map[string]*Node(nil)
	for _, kid := range n.Kids {
		if kid.Op == OpKeyword {
			if options == nil {
				options = map[string]*Node{}
			}
			options[kid.Text] = kid.Kids[0]
			continue
		}
		// A function is named, not called, only as map's first argument.
		if kid.Op == OpName && n.Text == "map" && len(arguments) == 0 {
			arguments = append(arguments, Str(kid.Text))
			continue
		}
		v, err := m.eval(kid)
		if err != nil {
			return nil, err
		}
		arguments = append(arguments, v)
	}
	switch n.Text {
	case "max", "min":
		return m.extreme(n.Text, arguments, options)
	case "sorted":
		return m.sorted(arguments, options)
	case "range":
		return rangeOf(arguments)
	case "zip":
		return zip(arguments)
	case "map":
		if len(arguments) != 2 {
			return nil, ErrType
		}
		items, err := iterate(arguments[1])
		if err != nil {
			return nil, err
		}
		name, _ := arguments[0].(Str)
		result := make(Stream, len(items))
		for i, item := range items {
			if result[i], err = call1(string(name), item); err != nil {
				return nil, err
			}
		}
		return result, nil
	}
	if len(arguments) != 1 || options != nil {
		return nil, ErrType
	}
	return call1(n.Text, arguments[0])
}

// call1 calls a function of one argument.
func call1(name string, v Value) (Value, error) {
	switch name {
	case "abs":
		n, ok := number(v)
		if !ok {
			return nil, ErrType
		}
		return intValue(max(n, -n)), nil
	case "int":
		return toInt(v)
	case "str":
		if s, ok := v.(Str); ok {
			return s, nil
		}
		return Str(Literal(v)), nil
	}
	items, err := unordered(v)
	if err != nil {
		return nil, err
	}
	switch name {
	case "list", "enumerate":
		if items, err = iterate(v); err != nil {
			return nil, err
		}
	}
	switch name {
	case "len":
		if _, ok := v.(Stream); ok {
			return nil, ErrType
		}
		return intValue(len(items)), nil
	case "sum":
		return sum(items)
	case "list":
		return List(items), nil
	case "set":
		return setOf(items), nil
	case "any", "all":
		stop := name == "any"
		for _, item := range items {
			if Truthy(item) == stop {
				return Bool(stop), nil
			}
		}
		return Bool(!stop), nil
	case "enumerate":
		pairs := make(Stream, len(items))
		for i, item := range items {
			pairs[i] = List{intValue(i), item}
		}
		return pairs, nil
	default:
		return nil, ErrName
	}
}

func toInt(v Value) (Value, error) {
	if n, ok := number(v); ok {
		return intValue(n), nil
	}
	s, ok := v.(Str)
	if !ok {
		return nil, ErrType
	}
	n, err := strconv.Atoi(string(s))
	if err != nil || n > maxInt || n < -maxInt {
		return nil, ErrValue
	}
	return intValue(n), nil
}

func sum(items []Value) (Value, error) {
	total := 0
	for _, item := range items {
		n, ok := number(item)
		if !ok {
			return nil, ErrType
		}
		total += n
	}
	if total > maxInt || total < -maxInt {
		return nil, ErrOverflow
	}
	return intValue(total), nil
}

func setOf(items []Value) Set {
	set := make(Set, 0, len(items))
	for _, item := range items {
		if !contains(set, item) {
			set = append(set, item)
		}
	}
	return set
}

func rangeOf(arguments []Value) (Value, error) {
	bounds := make([]int, len(arguments))
	for i, argument := range arguments {
		n, ok := number(argument)
		if !ok {
			return nil, ErrType
		}
		bounds[i] = n
	}
	low, high := 0, 0
	switch len(bounds) {
	case 1:
		high = bounds[0]
	case 2:
		low, high = bounds[0], bounds[1]
	default:
		return nil, ErrType
	}
	if high-low > maxItems {
		return nil, ErrSteps
	}
	items := make(List, 0, max(high-low, 0))
	for i := low; i < high; i++ {
		items = append(items, intValue(i))
	}
	return items, nil
}

func zip(arguments []Value) (Value, error) {
	if len(arguments) != 2 {
		return nil, ErrType
	}
	left, err := iterate(arguments[0])
	if err != nil {
		return nil, err
	}
	right, err := iterate(arguments[1])
	if err != nil {
		return nil, err
	}
	pairs := make(Stream, min(len(left), len(right)))
	for i := range pairs {
		pairs[i] = List{left[i], right[i]}
	}
	return pairs, nil
}

// keys returns the sort key of each item: itself, or what the function named
// by the option "key" returns.
func keys(items []Value, options map[string]*Node) ([]Value, error) {
	key := options["key"]
	if key == nil {
		return items, nil
	}
	if key.Op != OpName {
		return nil, ErrType
	}
	result := make([]Value, len(items))
	for i, item := range items {
		var err error
		if result[i], err = call1(key.Text, item); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// extreme is max or min: of one iterable with an optional default, or of
// several arguments. The first of equals wins.
func (m *machine) extreme(name string, arguments []Value, options map[string]*Node) (Value, error) {
	if len(arguments) == 0 || len(arguments) > 1 && options["default"] != nil {
		return nil, ErrType
	}
	items := arguments
	if len(arguments) == 1 {
		var err error
		if items, err = unordered(arguments[0]); err != nil {
			return nil, err
		}
	}
	if len(items) == 0 {
		if fallback := options["default"]; fallback != nil {
			return m.eval(fallback)
		}
		return nil, ErrValue
	}
	by, err := keys(items, options)
	if err != nil {
		return nil, err
	}
	best := 0
	for i := range items {
		order, err := ordering(by[i], by[best])
		if err != nil {
			return nil, err
		}
		if name == "max" && order > 0 || name == "min" && order < 0 {
			best = i
		}
	}
	return items[best], nil
}

// sorted is stable, also when reversed.
func (m *machine) sorted(arguments []Value, options map[string]*Node) (Value, error) {
	if len(arguments) != 1 {
		return nil, ErrType
	}
	items, err := unordered(arguments[0])
	if err != nil {
		return nil, err
	}
	by, err := keys(items, options)
	if err != nil {
		return nil, err
	}
	sign := 1
	if reverse := options["reverse"]; reverse != nil {
		v, err := m.eval(reverse)
		if err != nil {
			return nil, err
		}
		if Truthy(v) {
			sign = -1
		}
	}
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		c, cmpErr := ordering(by[a], by[b])
		if cmpErr != nil {
			err = cmpErr
		}
		return sign * c
	})
	if err != nil {
		return nil, err
	}
	result := make(List, len(items))
	for i, at := range order {
		result[i] = items[at]
	}
	return result, nil
}

// method calls a string or list method.
func method(receiver Value, name string, arguments []Value) (Value, error) {
	if list, ok := receiver.(List); ok {
		if name != "count" || len(arguments) != 1 {
			return nil, ErrAttribute
		}
		n := 0
		for _, item := range list {
			n += boolInt(Equal(item, arguments[0]))
		}
		return intValue(n), nil
	}
	s, ok := receiver.(Str)
	if !ok {
		return nil, ErrAttribute
	}
	switch len(arguments) {
	case 0:
		return stringMethod(string(s), name)
	case 1:
		if name == "join" {
			items, err := iterate(arguments[0])
			if err != nil {
				return nil, err
			}
			return join(string(s), items)
		}
		if name == "split" {
			break
		}
		part, ok := arguments[0].(Str)
		switch {
		case !ok:
		case name == "count" && part != "":
			return intValue(strings.Count(string(s), string(part))), nil
		case name == "startswith":
			return Bool(strings.HasPrefix(string(s), string(part))), nil
		case name == "endswith":
			return Bool(strings.HasSuffix(string(s), string(part))), nil
		}
		return nil, ErrType
	}
	return nil, ErrType
}

func stringMethod(s, name string) (Value, error) {
	switch name {
	case "upper":
		return Str(strings.ToUpper(s)), nil
	case "lower":
		return Str(strings.ToLower(s)), nil
	case "swapcase":
		return Str(strings.Map(func(r rune) rune {
			if isUpper(r) || isLower(r) {
				return r ^ ' '
			}
			return r
		}, s)), nil
	case "split":
		words := strings.Fields(s)
		items := make(List, len(words))
		for i, word := range words {
			items[i] = Str(word)
		}
		return items, nil
	case "isupper":
		return Bool(strings.ContainsFunc(s, isUpper) && !strings.ContainsFunc(s, isLower)), nil
	case "islower":
		return Bool(strings.ContainsFunc(s, isLower) && !strings.ContainsFunc(s, isUpper)), nil
	case "isdigit":
		return Bool(every(s, func(r rune) bool { return '0' <= r && r <= '9' })), nil
	case "isalpha":
		return Bool(every(s, func(r rune) bool { return isUpper(r) || isLower(r) })), nil
	default:
		return nil, ErrAttribute
	}
}

// every is what Python's str.is... methods ask: not empty, and all characters qualify.
func every(s string, qualifies func(rune) bool) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !qualifies(r) })
}

func isUpper(r rune) bool { return 'A' <= r && r <= 'Z' }

func isLower(r rune) bool { return 'a' <= r && r <= 'z' }
