package events

// upcaster turns the generic form of a payload into that of the next version.
// The generic form is what msgpack decodes into map[string]any.
type upcaster func(map[string]any) (map[string]any, error)

// upcasters[t][v] turns version v of t into version v+1. Payloads are written
// in the current version only and read in every version: an entry, once here,
// stays, and so do the golden files of the version it reads.
var upcasters = map[Type]map[int]upcaster{}
