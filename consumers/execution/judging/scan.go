package judging

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
)

//go:embed scan.py
var scanProgram string

// scanTimeout bounds the scan of one answer. The import of bandit is most of the usual time.
const scanTimeout = 20 * time.Second

// ErrNoBandit is returned if the Python of the sandbox has no bandit.
var ErrNoBandit = errors.New("a reward of this run needs bandit, which the Python of the sandbox does not have: install it there (python -m pip install bandit), or name a Python with bandit by --python")

// scanner parses texts in the sandbox.
type scanner struct{ pool *sandbox.Pool }

// version returns the name and the version of bandit.
func (s scanner) version(ctx context.Context) (string, error) {
	outcomes, err := s.run(ctx, []string{"version()"})
	if err != nil {
		return "", err
	}
	version, ok := outcomes[0].Value.(literal.Str)
	if !ok {
		return "", fmt.Errorf("%w: %s", ErrNoBandit, cmp.Or(outcomes[0].Detail, outcomes[0].Kind.String()))
	}
	return "bandit " + string(version), nil
}

// scan returns the findings in each code, or the reason why it has no measurement. The codes
// are scanned in one process. After one that ends it or runs over its time, the next ones
// have another process.
func (s scanner) scan(ctx context.Context, codes []string) ([]scanned, error) {
	outcomes, err := s.run(ctx, each("scan", codes))
	if err != nil {
		return nil, err
	}
	all := make([]scanned, len(codes))
	for i := range outcomes {
		// No text is run, so only bandit's own modules are imported. It can be removed or
		// replaced at any time. That is no judgement about an answer.
		if o := &outcomes[i]; o.Kind == sandbox.Raised && missingModule.MatchString(o.Detail) {
			return nil, fmt.Errorf("%w: %s", ErrNoBandit, o.Detail)
		}
		all[i] = readScan(&outcomes[i])
	}
	return all, nil
}

var missingModule = regexp.MustCompile(`^(ModuleNotFound|Import)Error\b`)

// scanned is the result of the scan of a code.
type scanned struct {
	findings []events.Finding
	failure  string
}

func readScan(o *sandbox.Outcome) scanned {
	if reason, ok := o.Value.(literal.Str); ok {
		return scanned{failure: sandbox.Clip("bandit: " + string(reason))}
	}
	value := o.Value
	if value != nil { // a large one is packed
		value, _ = literal.Parse(literal.Text(value))
	}
	list, ok := value.(literal.List)
	if !ok {
		return scanned{failure: sandbox.Clip("bandit: " + o.Kind.String() + ": " + cmp.Or(o.Detail, "no findings"))}
	}
	var s scanned
	for _, item := range list[:min(len(list), events.MaxFindings)] {
		t, ok := item.(literal.Tuple)
		if !ok || len(t) != 4 {
			return scanned{failure: "bandit: its findings cannot be read"}
		}
		line, err := strconv.Atoi(literal.Text(t[3]))
		if err != nil {
			return scanned{failure: "bandit: a finding has no line"}
		}
		id, _ := t[0].(literal.Str)
		severity, _ := t[1].(literal.Str)
		confidence, _ := t[2].(literal.Str)
		s.findings = append(s.findings, events.Finding{ID: string(id), Severity: string(severity), Confidence: string(confidence), Line: line})
	}
	return s
}

// parses returns whether Python's parser accepts each code, or the reason why that is not
// known.
func (s scanner) parses(ctx context.Context, codes []string) (parse []bool, failures []string, err error) {
	outcomes, err := s.run(ctx, each("parses", codes))
	if err != nil {
		return nil, nil, err
	}
	parse, failures = make([]bool, len(codes)), make([]string, len(codes))
	for i, o := range outcomes {
		yes, ok := o.Value.(literal.Bool)
		if parse[i] = bool(yes); !ok {
			failures[i] = sandbox.Clip("the parser: " + o.Kind.String() + ": " + o.Detail)
		}
	}
	return parse, failures, nil
}

func each(function string, codes []string) []string {
	calls := make([]string, len(codes))
	for i, code := range codes {
		calls[i] = function + "(" + literal.Text(literal.Str(code)) + ")"
	}
	return calls
}

func (s scanner) run(ctx context.Context, calls []string) ([]sandbox.Outcome, error) {
	if len(calls) == 0 {
		return nil, nil
	}
	// The budget leaves each text its time, also beside slow ones.
	limits := sandbox.Job{Each: scanTimeout, Budget: scanTimeout * time.Duration(1+len(calls))}
	limits.Code, limits.Entry, limits.Items = scanProgram, "scan", calls
	report, err := s.pool.RunCalls(ctx, limits)
	if err != nil {
		return nil, err
	}
	if !report.Loads {
		return nil, fmt.Errorf("the program of the judge does not load: %s", report.LoadError)
	}
	return report.Outcomes, nil
}
