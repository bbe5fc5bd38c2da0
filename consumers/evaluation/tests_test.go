package evaluation

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestSummarizeTests has figures that were computed by hand.
func TestSummarizeTests(t *testing.T) {
	near := cmp.Options{cmpopts.EquateApprox(0, 1e-9), cmpopts.IgnoreFields(TestSummary{}, "Low", "High")}
	results := []*TestResult{
		{ID: "a", Written: 5, Passed: 5, Mutants: 10, Survived: 1, Branches: 4, Taken: 3, Lines: 5, TakenLines: 4}, // 90% killed
		{ID: "b", Written: 5, Passed: 5, Mutants: 4, Survived: 2},                                                  // 50%
		{ID: "c", Written: 5, Passed: 4, Branches: 2, Lines: 2, TakenLines: 1},                                     // no mutants
		{ID: "d", Written: 1, Passed: 1},                                                                           // too few tests
		{ID: "e"},                                                                                                  // none
		{ID: "f", Written: 5, Passed: 5},                                                                           // a program without mutants
		{ID: "b", Suite: 1, Written: 5, Passed: 5, Mutants: 100, Survived: 0},                                      // 100%
	}
	// 5+5+4+1+0+5+5 = 25 of 35 tests pass; mut is the mean of 90, 50 and 100, which is 80.
	// 3 of 4 and 0 of 2 branches are 37.5%, 4 of 5 and 1 of 2 lines 65%.
	want := TestSummary{K: 5, Suites: 7, Pass: 100 * 25.0 / 35, Perfect: 3, Mut: 80, Mul: 100 * 25.0 / 35 * 0.8, Branch: 37.5, Measured: 2, Line: 65, Lined: 2}
	got := SummarizeTests(results, 5)
	if d := cmp.Diff(want, got, near); d != "" {
		t.Error(d)
	}
	if !(50 <= got.Low && got.Low < 80 && 80 < got.High && got.High <= 100) {
		t.Errorf("interval %v to %v", got.Low, got.High)
	}
	if d := cmp.Diff(TestSummary{K: 5, Suites: 1, Pass: 20}, SummarizeTests(results[3:4], 5), near); d != "" {
		t.Error(d)
	}
	if one := SummarizeTests(results[:1], 5); one.Mut != 90 || one.Low != 90 || one.High != 90 || one.Mul != 90 {
		t.Errorf("%+v", one)
	}
	var table bytes.Buffer
	if err := got.Print(&table); err != nil || !strings.Contains(table.String(), "71.4%         3   80.0% (") || !strings.Contains(table.String(), "57.1     37.5%   65.0%\n") {
		t.Errorf("%v\n%s", err, &table)
	}
}

func TestReadTestResult(t *testing.T) {
	r, err := ReadTestResult([]byte(`{"id":"a","suite":1,"written":5,"passed":5,"mutants":3,"survived":3}`))
	if d := cmp.Diff(&TestResult{ID: "a", Suite: 1, Written: 5, Passed: 5, Mutants: 3, Survived: 3}, r); err != nil || d != "" {
		t.Error(err, d)
	}
	for _, line := range []string{`{`, `{}`, `{"id":"a","passed":2,"written":1}`, `{"id":"a","survived":1}`, `{"id":"a","suite":-1}`, `{"id":"a","taken":1}`, `{"id":"a","taken_lines":1}`} {
		if _, err := ReadTestResult([]byte(line)); err == nil || !strings.Contains(err.Error(), "not a line of test results") {
			t.Errorf("%s: %v", line, err)
		}
	}
}
