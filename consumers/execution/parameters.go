package execution

import (
	"slices"
	"strings"

	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
)

// truthFacts describes a ground truth (harness/truths.py).
type truthFacts struct {
	parameters []parameter // of the entry point
	known      bool        // parameters are
	varies     bool        // its values may depend on addresses, the hash seed, the time or chance
}

// parameter is one of the entry point's parameters.
type parameter struct {
	name, kind string // as in Python's inspect.Parameter
	standard   string // literal text of the default; empty: there is none, or it is no constant
}

// describeTruth is the call that asks for truthFacts.
const describeTruth = ""

func readFacts(o sandbox.Outcome) truthFacts {
	facts := truthFacts{varies: true}
	pair, ok := o.Value.(literal.Tuple)
	if !ok || len(pair) != 2 {
		return facts
	}
	facts.varies = !literal.Equal(pair[1], literal.Bool(false))
	list, ok := pair[0].(literal.List)
	if facts.known = ok; !ok {
		return facts
	}
	for _, item := range list {
		fields, ok := item.(literal.Tuple)
		if !ok || len(fields) != 3 {
			return truthFacts{varies: true}
		}
		name, _ := fields[0].(literal.Str)
		kind, _ := fields[1].(literal.Str)
		standard, _ := fields[2].(literal.Str)
		p := parameter{name: string(name), kind: string(kind)}
		if v, err := literal.Parse(string(standard)); err == nil {
			p.standard = literal.Text(v)
		}
		facts.parameters = append(facts.parameters, p)
	}
	return facts
}

// given is an argument of a call in a spelling that equal arguments share.
type given struct{ name, text string }

// bind writes a call as the value of each parameter, so that f(0), f(x=0) and, with 1 for
// the default of y, f(0, 1) are one. It reports whether Python accepts the call.
func (f *truthFacts) bind(call []given) (string, bool) {
	if !f.known {
		return "", false
	}
	var positional []string
	named := map[string]string{}
	var order []string // of the names
	for _, g := range call {
		if g.name == "" {
			positional = append(positional, g.text)
			continue
		}
		named[g.name] = g.text
		order = append(order, g.name)
	}
	var bound []string
	rest := false // a parameter takes the other names
	for _, p := range f.parameters {
		text, byName := named[p.name]
		switch {
		case p.kind == "VAR_POSITIONAL":
			bound = append(bound, "*"+strings.Join(positional, ", "))
			positional = nil
			continue
		case p.kind == "VAR_KEYWORD":
			rest = true
			continue
		case p.kind != "KEYWORD_ONLY" && len(positional) > 0:
			if byName && p.kind != "POSITIONAL_ONLY" {
				return "", false
			}
			text, positional = positional[0], positional[1:]
		case byName && p.kind != "POSITIONAL_ONLY":
			order = slices.DeleteFunc(order, func(name string) bool { return name == p.name })
		default:
			text = p.standard
		}
		bound = append(bound, p.name+"="+text)
	}
	for _, name := range order {
		bound = append(bound, "**"+name+"="+named[name])
	}
	return strings.Join(bound, "\x00"), len(positional) == 0 && (rest || len(order) == 0)
}
