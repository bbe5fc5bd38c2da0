package sandbox

import (
	"context"
	"fmt"

	"codea1/consumers/execution/literal"
)

// Attempt is one try to break out of the sandbox.
type Attempt struct {
	Means  string // the harm that a success would do
	Failed bool   // the sandbox stopped it
	Detail string // the error that stopped it, or the proof of its success
}

// BreakOut tries to break out of the sandbox in every way of harness/breakout.py,
// each in a candidate of its own.
func (p *Pool) BreakOut(ctx context.Context) ([]Attempt, error) {
	program := Program{Code: readHarness("breakout.py"), EntryPoint: "names"}
	report, err := p.Run(ctx, program, []string{"names()"})
	if err != nil {
		return nil, err
	}
	if !report.Loads {
		return nil, fmt.Errorf("the attempts to break out do not load: %s", report.LoadError)
	}
	names, ok := report.Outcomes[0].Value.(literal.List)
	if !ok {
		return nil, fmt.Errorf("the attempts to break out are not listed: %s", report.Outcomes[0].Detail)
	}
	var attempts []Attempt
	for _, n := range names {
		pair := n.(literal.Tuple)
		name, means := string(pair[0].(literal.Str)), string(pair[1].(literal.Str))
		report, err := p.Run(ctx, program, []string{name + "()"})
		if err != nil {
			return nil, err
		}
		o := report.Outcomes[0]
		a := Attempt{Means: means, Failed: o.Kind != Returned, Detail: o.Detail}
		if o.Value != nil {
			a.Detail = Clip(literal.Text(o.Value))
		}
		attempts = append(attempts, a)
	}
	return attempts, nil
}
