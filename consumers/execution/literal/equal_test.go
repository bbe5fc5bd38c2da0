package literal

import "testing"

func parse(t *testing.T, text string) Value {
	t.Helper()
	v, err := Parse(text)
	if err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	return v
}

func TestEqual(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"1", "1.0", true},
		{"1", "True", true},
		{"0", "False", true},
		{"0.0", "-0.0", true},
		{"1", "'1'", false},
		{"None", "False", false},
		{"0", "None", false},
		{"0.1", "0.1000000000000000055511151231257827", true},
		{"9007199254740993", "9007199254740992.0", false}, // no rounding on the way
		{"10000000000000000000000", "1e22", true},
		{"100000000000000000000000", "1e23", false}, // 1e23 is not a float
		{"9223372036854775807", "0x7fffffffffffffff", true},
		{"-9223372036854775808", "-9223372036854775808.0", true},
		{"9223372036854775808", "9223372036854775808.0", true},
		{"-9223372036854775808", "9223372036854775808", false},
		{"inf", "float('inf')", true},
		{"inf", "-inf", false},
		{"nan", "nan", false},
		{"[nan]", "[nan]", false},
		{"{'a': nan}", "{'a': nan}", false},
		{"[1, 2]", "(1, 2)", false},
		{"[]", "()", false},
		{"[1, [2.0]]", "[True, [2]]", true},
		{"[1, 2]", "[2, 1]", false},
		{"[[1], 2]", "[[1, 2]]", false},
		{"(1, 2)", "(1, 2, 3)", false},
		{"{1, 2}", "{2, 1.0}", true},
		{"{1, 2}", "frozenset({1, 2})", true},
		{"set()", "frozenset()", true},
		{"set()", "{}", false},
		{"{1, 2}", "{1, 2, 3}", false},
		{"{'a': 1, 'b': 2}", "{'b': 2.0, 'a': True}", true},
		{"{'a': 1}", "{'a': 2}", false},
		{"{1: 'x'}", "{True: 'x'}", true},
		{"{(1, 2): 3}", "{(1.0, 2): 3}", true},
		{"'a'", "b'a'", false},
		{"'\\xe9'", "'é'", true},
		{"'\\ud83d\\ude00'", "'\\U0001f600'", false}, // two surrogates are not the character
		{"['ab', 'c']", "['a', 'bc']", false},
		{"['s', 'x']", "['sx']", false},
	} {
		a, b := parse(t, c.a), parse(t, c.b)
		if Equal(a, b) != c.want || Equal(b, a) != c.want {
			t.Errorf("%s == %s: want %t", c.a, c.b, c.want)
		}
		if c.want && Key(a) != Key(b) {
			t.Errorf("%s and %s are equal, but their keys differ", c.a, c.b)
		}
	}
}

func TestSelfEqual(t *testing.T) {
	for text, want := range map[string]bool{
		"1": true, "[]": true, "inf": true, "nan": false, "[1, (nan,)]": false, "{1: {2: nan}}": false, "{nan}": false,
	} {
		if got := SelfEqual(parse(t, text)); got != want {
			t.Errorf("SelfEqual(%s) = %t", text, got)
		}
	}
}
