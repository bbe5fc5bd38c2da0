package probes

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
)

//go:embed mutants.py
var mutantsProgram string

//go:embed cosmicray.py
var cosmicRayProgram string

// Mutant is a program with one change.
type Mutant struct {
	Operator string // that made the change
	Code     string
}

// Limits of making the mutants of a program.
const (
	makeTimeout = time.Minute
	mutantBytes = 8 << 20 // of the text of all mutants
)

// Mutants returns the mutants of a program, in the order of their changes. The program
// is read, not run. Two mutants may be the same program.
func Mutants(ctx context.Context, pool *sandbox.Pool, code string) ([]Mutant, error) {
	return makeMutants(ctx, pool.RunUncached, mutantsProgram, "mutants("+literal.Text(literal.Str(code))+")")
}

// CosmicRay returns the mutants that Cosmic Ray makes of a program. The Python of the
// pool needs it.
func CosmicRay(ctx context.Context, pool *sandbox.Pool, code string) ([]Mutant, error) {
	mutants, err := makeMutants(ctx, pool.RunUncached, cosmicRayProgram, "mutants("+literal.Text(literal.Str(code))+")")
	if errors.Is(err, errNotLoaded) {
		err = fmt.Errorf("%w; the mutants of Cosmic Ray need it in the Python of the sandbox: pip install cosmic-ray for the one that --python names", err)
	}
	return mutants, err
}

// Sample returns different mutants of a program, most of them at most, from all parts of
// it. It leaves out changes that often make a program run without an end or fill the
// memory: those in a while loop, and new powers and shifts.
func Sample(ctx context.Context, pool *sandbox.Pool, code string, most int) ([]Mutant, error) {
	return makeMutants(ctx, pool.RunCalls, mutantsProgram, fmt.Sprintf("sample(%s, %d)", literal.Text(literal.Str(code)), most))
}

var errNotLoaded = errors.New("the program that makes mutants does not load")

func makeMutants(ctx context.Context, run func(context.Context, sandbox.Job) (sandbox.Report, error), program, call string) ([]Mutant, error) {
	report, err := run(ctx, sandbox.Job{
		Code: program, Entry: "mutants", Items: []string{call},
		Each: makeTimeout, Budget: 2 * makeTimeout, ValueBytes: mutantBytes,
	})
	if err != nil {
		return nil, err
	}
	if !report.Loads {
		return nil, fmt.Errorf("%w: %s", errNotLoaded, report.LoadError)
	}
	made := report.Outcomes[0]
	if made.Value == nil {
		return nil, fmt.Errorf("making mutants: %s %s", made.Kind, made.Detail)
	}
	value, err := literal.Parse(literal.Text(made.Value)) // a large one is packed
	if err != nil {
		return nil, fmt.Errorf("making mutants: %w", err)
	}
	changes, _ := value.(literal.List)
	mutants := make([]Mutant, 0, len(changes))
	for _, change := range changes {
		c, ok := change.(literal.Tuple)
		if !ok || len(c) != 2 {
			return nil, fmt.Errorf("making mutants: %s is no change", sandbox.Clip(literal.Text(change)))
		}
		operator, _ := c[0].(literal.Str)
		mutant, _ := c[1].(literal.Str)
		mutants = append(mutants, Mutant{string(operator), string(mutant)})
	}
	return mutants, nil
}
