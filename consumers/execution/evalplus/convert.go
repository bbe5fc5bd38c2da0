package evalplus

import (
	"strconv"
	"strings"

	"codea1/consumers/execution/literal"
)

// conversion makes a value of MBPP's functions from one that JSON has: JSON has no
// tuples, sets and complex numbers. A value of another type stays as it is.
type conversion func(literal.Value) literal.Value

// conversions are those of EvalPlus, by task. Each takes the list of a call's
// arguments.
var conversions = map[string]conversion{}

func init() {
	for _, c := range []struct {
		tasks   string
		convert conversion
	}{
		{"2 116 132 143 222 261 273 394 399 421 424 429 470 560 579 596 616 630 726 740 744 809", each(tuple)},
		{"63 64 70 94 120 237 272 299 400 409 417 438 473 614 780", each(each(tuple))},
		{"75 413 444 753", at(0, each(tuple))},
		{"106 750", at(1, tuple)},
		{"115", at(0, each(set))},
		{"124", then(at(0, float), at(1, complexNumber))},
		{"250 307 405 446 617 720 763 808", at(0, tuple)},
		{"259 401 445", each(then(each(tuple), tuple))},
		{"278", at(0, then(each(tuple), tuple))},
		{"722", at(0, values(tuple))},
		{"252", at(0, complexNumber)},
		{"580 615 791", each(tuples)},
	} {
		for task := range strings.FieldsSeq(c.tasks) {
			conversions[mbpp+task] = c.convert
		}
	}
}

// convert returns the arguments of a call as the task's function takes them.
func (t *Task) convert(given literal.List) literal.Tuple {
	if convert := conversions[t.ID]; convert != nil {
		given = convert(given).(literal.List)
	}
	return literal.Tuple(given)
}

func tuple(v literal.Value) literal.Value {
	if list, ok := v.(literal.List); ok {
		return literal.Tuple(list)
	}
	return v
}

// tuples makes tuples of a list and of all lists in it.
func tuples(v literal.Value) literal.Value { return tuple(each(tuples)(v)) }

// set makes a set of a list. Without items it is an empty dict.
func set(v literal.Value) literal.Value {
	list, ok := v.(literal.List)
	if !ok || len(list) == 0 {
		return literal.Dict{}
	}
	distinct := literal.Set{}
	seen := map[string]bool{}
	for _, item := range list {
		if key := literal.Key(item); !seen[key] {
			seen[key] = true
			distinct = append(distinct, item)
		}
	}
	return distinct
}

func float(v literal.Value) literal.Value {
	if text, ok := v.(literal.Str); ok {
		if x, err := strconv.ParseFloat(string(text), 64); err == nil {
			return literal.Float(x)
		}
	}
	return v
}

func complexNumber(v literal.Value) literal.Value {
	if text, ok := v.(literal.Str); ok {
		if x, err := strconv.ParseComplex(strings.ReplaceAll(string(text), "j", "i"), 128); err == nil {
			return literal.Complex(x)
		}
	}
	return v
}

// each converts the items of a list.
func each(convert conversion) conversion {
	return func(v literal.Value) literal.Value {
		list, ok := v.(literal.List)
		if !ok {
			return v
		}
		converted := make(literal.List, len(list))
		for i, item := range list {
			converted[i] = convert(item)
		}
		return converted
	}
}

// at converts the item of a list at an index.
func at(index int, convert conversion) conversion {
	return func(v literal.Value) literal.Value {
		list, ok := v.(literal.List)
		if !ok || index >= len(list) {
			return v
		}
		converted := append(literal.List{}, list...)
		converted[index] = convert(list[index])
		return converted
	}
}

// values converts the values of a dict.
func values(convert conversion) conversion {
	return func(v literal.Value) literal.Value {
		dict, ok := v.(literal.Dict)
		if !ok {
			return v
		}
		converted := make(literal.Dict, len(dict))
		for i, e := range dict {
			converted[i] = literal.Entry{Key: e.Key, Value: convert(e.Value)}
		}
		return converted
	}
}

func then(first, second conversion) conversion {
	return func(v literal.Value) literal.Value { return second(first(v)) }
}
