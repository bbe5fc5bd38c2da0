package execution

import (
	"context"

	"codea1/consumers/execution/literal"
)

// ReadAssertion reads the one statement `assert call == value` of a text, where call
// calls the entry point. It reports whether the text is one. Arguments and value may be
// expressions as in a suite (parseSuites); no program takes part in computing them.
// The text of the call has literals only.
func (x *Executor) ReadAssertion(ctx context.Context, entry, text string) (call string, value literal.Value, ok bool, err error) {
	suites, err := x.parseSuites(ctx, entry, []string{text}, false, x.config.JobTimeout)
	if err != nil {
		return "", nil, false, err
	}
	statements := suites[0]
	if len(statements) != 1 || statements[0].Reason != "" || statements[0].stated == nil {
		return "", nil, false, nil
	}
	return statements[0].Call, statements[0].stated, true, nil
}
