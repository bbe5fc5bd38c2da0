package execution

import (
	"slices"
	"strings"
	"testing"

	"codea1/events"
)

// TestSuitesReachNoProgram: a suite's expressions affect neither the ground
// truth nor an answer, nor the tests of any other suite.
func TestSuitesReachNoProgram(t *testing.T) {
	x := openExecutor(t, quick)
	attacks := []string{
		"assert f([1, (v for v in []).gi_frame.f_globals.update(f=lambda v: 'broken')][0]) == 1",
		"assert f([[exec for v in [0]][0]('global f; f = lambda v: 666'), [0 for exec in []], 1][2]) == 1",
		"assert f((lambda v: [0 for setattr in [v]])(0) and setattr) == 1",
		"assert f([f for v in [0]] and [0 for f in []]) == []",
		"assert f(list(zip([eval], [0 for eval in []]))) == []",
		"assert f(2) == [(v for v in []).gi_frame.f_builtins.update(len=lambda v: 7), 2][1]",
		"assert f(len('{0.__globals__}'.format(lambda: 0))) == 1",
		"assert f(len('{a.__globals__}'.format_map({'a': lambda: 0}))) == 1",
		"assert f(int.mro()) == 1",
		"assert f(lambda: (lambda: 0).gi_code) == 1",
	}
	rows := [][]string{attacks, make([]string, len(attacks))}
	for i := range attacks {
		rows[1][i] = "assert f([1, 2]) == [1, 2]\nassert f('a') == len('a')"
	}
	const honest = "def f(x): return x"
	out, err := x.Execute(t.Context(), sampled(honest, nil, []string{honest, "helper = 1\n" + honest}, rows))
	if err != nil {
		t.Fatal(err)
	}
	for i, suite := range out.Answers[0].Suites {
		if test := suite.Tests[0]; test.Status != events.StatusUnparsable || !strings.Contains(test.Detail, "uses") {
			t.Errorf("%s: %s, %s", attacks[i], test.Status, test.Detail)
		}
	}
	for _, suite := range out.Answers[1].Suites {
		for i, expected := range []string{"[1, 2]", "'a'"} {
			if test := suite.Tests[i]; test.Status != events.StatusKept || test.Expected != expected || test.Verdict != events.VerdictPass || test.Wrong != (i == 1) {
				t.Errorf("%+v", test)
			}
		}
	}
}

// TestArgumentsAreTheSame: no argument depends on the program that is called with it.
func TestArgumentsAreTheSame(t *testing.T) {
	x := openExecutor(t, quick)
	suite := strings.Join([]string{
		"assert f(pow(2, 3)) == 8",
		"assert f(sum([1, 2])) == 3",
		"assert f([str(lambda: 0) == str(lambda: 0), str(map(abs, []))[:4]]) == [True, '<map']",
		"assert f([v for v in {3, 1, 2}]) == 0",
	}, "\n")
	const plain = "def f(x): return repr(x)"
	const own = "from math import *\ndef sum(v): return 9\ndef map(*v): return 0\ndef str(v): return 'x'\n" + plain
	for _, programs := range [][2]string{{plain, own}, {own, plain}} {
		out, err := x.Execute(t.Context(), sampled(programs[0], nil, programs[1:], [][]string{{suite}}))
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range out.Answers[0].Suites[0].Tests {
			if test.Status != events.StatusKept || test.Verdict != events.VerdictPass || strings.Contains(test.Expected, ".0") {
				t.Errorf("%+v", test)
			}
		}
	}
}

// TestStatedAnswersAreShort: a short expression may stand for a long answer, which
// would go into an event.
func TestStatedAnswersAreShort(t *testing.T) {
	x := openExecutor(t, quick)
	suites, err := x.parseSuites(t.Context(), "f", []string{"assert f(1) == [0] * 300000"}, false, x.config.JobTimeout)
	if err != nil {
		t.Fatal(err)
	}
	if st := suites[0][0]; !strings.Contains(st.Reason, "over the size limit") || st.stated != nil {
		t.Errorf("%+v", st.Reason)
	}
}

func TestInTurn(t *testing.T) {
	var got []int
	inTurn([][]int{{1, 4, 6, 7}, {}, {2}, {3, 5}}, func(n *int) { got = append(got, *n) })
	if !slices.Equal(got, []int{1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("got %v", got)
	}
}
