package events

import "fmt"

// upcaster turns the generic form of a payload into that of the next version.
// The generic form is a map[string]any as msgpack decodes it.
type upcaster func(map[string]any) (map[string]any, error)

// upcasters[t][v] turns version v of t into version v+1. A build writes the
// current version and reads every version. A released entry is never removed,
// and neither are the golden files of the version it reads. No schema has
// changed yet.
var upcasters = map[Type]map[int]upcaster{}

// upcast returns a payload of version from in version to.
func upcast(t Type, from, to int, raw []byte) ([]byte, error) {
	if from == to {
		return raw, nil
	}
	var v map[string]any
	if err := unmarshal(raw, &v, false); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	for ; from < to; from++ {
		up, ok := upcasters[t][from]
		if !ok {
			return nil, fmt.Errorf("no upcaster from version %d", from)
		}
		var err error
		if v, err = up(v); err != nil {
			return nil, fmt.Errorf("upcast from version %d: %w", from, err)
		}
	}
	return marshal(v)
}
