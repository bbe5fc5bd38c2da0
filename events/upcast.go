package events

import "fmt"

// upcaster turns the generic form of a payload into that of the next version.
// The generic form is what msgpack decodes into map[string]any.
type upcaster func(map[string]any) (map[string]any, error)

// upcasters[t][v] turns version v of t into version v+1. Payloads are written
// in the current version only and read in every version: an entry, once here,
// stays, and so do the golden files of the version it reads.
var upcasters = map[Type]map[int]upcaster{
	TypeCodeSampled:  {1: codeSampledByColumn},
	TypeTestsSampled: {1: testsSampledByColumn},
	TypeCodeExecuted: {1: codeExecutedInShort},
}

// In version 1 a completion is one map, and token ids are little-endian int32.

func codeSampledByColumn(v map[string]any) (map[string]any, error) {
	var err error
	if v["prompt"], err = byPlane(v["prompt"]); err != nil {
		return nil, err
	}
	v["answers"], v["response_tokens"], v["response_logprobs"], err = byColumn(v["answers"])
	return v, err
}

func testsSampledByColumn(v map[string]any) (map[string]any, error) {
	var err error
	prompts, _ := v["prompts"].([]any)
	for i := range prompts {
		if prompts[i], err = byPlane(prompts[i]); err != nil {
			return nil, err
		}
	}
	suites, _ := v["suites"].([]any)
	tokenRows, logProbRows := make([]any, len(suites)), make([]any, len(suites))
	for i := range suites {
		if suites[i], tokenRows[i], logProbRows[i], err = byColumn(suites[i]); err != nil {
			return nil, err
		}
	}
	v["response_tokens"], v["response_logprobs"] = tokenRows, logProbRows
	return v, nil
}

// byColumn takes a list of completions apart.
func byColumn(row any) (texts, tokenRows, logProbRows []any, err error) {
	all, _ := row.([]any)
	for i := range all {
		c, ok := all[i].(map[string]any)
		if !ok {
			return nil, nil, nil, fmt.Errorf("%w: completion %d is no map", ErrMalformed, i)
		}
		tokens, err := byPlane(c["tokens"])
		if err != nil {
			return nil, nil, nil, fmt.Errorf("completion %d: %w", i, err)
		}
		texts = append(texts, map[string]any{"text": c["text"], "finish": c["finish"]})
		tokenRows = append(tokenRows, map[string]any{"tokens": tokens})
		logProbRows = append(logProbRows, map[string]any{"logprobs": c["logprobs"]})
	}
	return texts, tokenRows, logProbRows, nil
}

// byPlane puts the bytes of little-endian numbers into planes.
func byPlane(bin any) (any, error) {
	b, ok := bin.([]byte)
	if bin == nil || ok && len(b) == 0 {
		return []byte{}, nil
	}
	if !ok || len(b)%4 != 0 {
		return nil, fmt.Errorf("%w: token ids are %T of %d bytes, want a bin of a multiple of 4", ErrMalformed, bin, len(b))
	}
	out := make([]byte, len(b))
	lowest, second, third, highest := planes(out)
	for i := range lowest {
		lowest[i], second[i], third[i], highest[i] = b[4*i], b[4*i+1], b[4*i+2], b[4*i+3]
	}
	return out, nil
}

// codeExecutedInShort changes what version 2 would read as something else: in
// version 1 a test with no expected value had none.
func codeExecutedInShort(v map[string]any) (map[string]any, error) {
	answers, _ := v["answers"].([]any)
	for _, answer := range answers {
		for _, suite := range listOf(answer, "suites") {
			for _, test := range listOf(suite, "tests") {
				test, ok := test.(map[string]any)
				if _, said := test["expect"]; ok && !said {
					test["expect"] = ""
				}
			}
		}
	}
	return v, nil
}

// listOf returns a list of a map; none where there is no such thing.
func listOf(value any, name string) []any {
	v, _ := value.(map[string]any)
	list, _ := v[name].([]any)
	return list
}
