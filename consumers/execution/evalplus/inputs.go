package evalplus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"codea1/consumers/execution/literal"
)

// arguments reads a list of inputs, each of which is a list of arguments.
func (t *Task) arguments(text json.RawMessage) ([]literal.Tuple, error) {
	if len(text) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := ReadValue(d)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	rows, ok := v.(literal.List)
	if empty, isDict := v.(literal.Dict); isDict && len(empty) == 0 {
		ok = true // some rows have {} for no inputs
	}
	if !ok {
		return nil, fmt.Errorf("%w: want a list of inputs", ErrFormat)
	}
	inputs := make([]literal.Tuple, len(rows))
	for i, row := range rows {
		given, ok := row.(literal.List)
		if !ok {
			return nil, fmt.Errorf("%w: input %d is no list of arguments", ErrFormat, i)
		}
		inputs[i] = t.convert(given)
	}
	return inputs, nil
}

// ReadValue reads a JSON value of a decoder that uses numbers, as Python's json does: the keys of a dict keep their
// order, and a number is a float if it has a point or an exponent.
func ReadValue(d *json.Decoder) (literal.Value, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case bool:
		return literal.Bool(v), nil
	case string:
		return literal.Str(v), nil
	case json.Number:
		return readNumber(v.String())
	case json.Delim:
		if v == '{' {
			dict := literal.Dict{}
			for d.More() {
				key, err := ReadValue(d)
				if err != nil {
					return nil, err
				}
				value, err := ReadValue(d)
				if err != nil {
					return nil, err
				}
				dict = append(dict, literal.Entry{Key: key, Value: value})
			}
			_, err := d.Token()
			return dict, err
		}
		list := literal.List{}
		for d.More() {
			item, err := ReadValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		_, err := d.Token()
		return list, err
	}
	return literal.None{}, nil
}

func readNumber(text string) (literal.Value, error) {
	if strings.ContainsAny(text, ".eE") {
		x, err := strconv.ParseFloat(text, 64)
		if math.IsInf(x, 0) { // as Python reads it
			err = nil
		}
		return literal.Float(x), err
	}
	n, ok := new(big.Int), len(text) <= literal.MaxIntDigits
	if ok { // reading millions of digits takes minutes
		n, ok = n.SetString(text, 10)
	}
	if !ok {
		return nil, fmt.Errorf("%.60s is no number within the limits", text)
	}
	return literal.BigInt(n), nil
}
