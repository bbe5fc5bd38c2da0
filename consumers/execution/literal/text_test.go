package literal

import (
	"errors"
	"strings"
	"testing"
)

// TestText reads a text and writes it again: as it was, or as want says.
func TestText(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"None", ""}, {"True", ""}, {"False", ""},
		{"0", ""}, {"-7", ""}, {"123456789012345678901234567890", ""}, {"-0", "0"}, {"0x1F", "31"}, {"-0xff", "-255"},
		{"9223372036854775807", ""}, {"9223372036854775808", ""}, {"-9223372036854775808", ""}, {"-9223372036854775809", ""},
		{strings.Repeat("9", 4200), ""}, {"-0x" + strings.Repeat("f", 4000), ""},
		{"0.0", ""}, {"-0.0", ""}, {"0.1", ""}, {"-2.5", ""}, {"1.", "1.0"}, {".5", "0.5"},
		{"0.0001", ""}, {"0.00001", "1e-05"}, {"1e16", "1e+16"}, {"1234567890123456.0", ""},
		{"1e-320", ""}, {"1.7976931348623157e+308", ""}, {"1e999", "float('inf')"},
		{"inf", "float('inf')"}, {"-inf", "float('-inf')"}, {"nan", "float('nan')"}, {"-nan", "float('nan')"},
		{"float('-inf')", ""},
		{"''", ""}, {`"it's"`, ""}, {`'say "it\'s"'`, ""}, {`"a"`, "'a'"},
		{`'\n\r\t\\\x00\x7f'`, ""}, {`'é€😀'`, ""}, {`'\xe9'`, `'é'`}, {`'\u200b\xa0'`, `'\u200b\xa0'`},
		{`'\ud800'`, ""}, {`'\ud83d\ude00'`, ""}, {`'\U0001f600'`, `'😀'`}, {`'\U000e0001'`, ""},
		{"b''", ""}, {`b'a\xff\x00'`, ""}, {`b"it's"`, ""},
		{"[]", ""}, {"[1, 'a', None]", ""}, {" [ 1 , ] ", "[1]"},
		{"()", ""}, {"(1,)", ""}, {"(1)", "1"}, {"(1, 2)", ""},
		{"{}", ""}, {"{'b': 1, 'a': [2]}", ""}, {"{1: 'a', True: 'b'}", "{1: 'b'}"},
		{"set()", ""}, {"{3, 1, 2}", "{1, 2, 3}"}, {"{1, 1.0, True}", "{1}"},
		{"frozenset()", ""}, {"frozenset({2, 1})", "frozenset({1, 2})"}, {"{frozenset({1})}", ""},
	} {
		want := c.want
		if want == "" {
			want = c.text
		}
		if got := Text(parse(t, c.text)); got != want {
			t.Errorf("%s reads back as %s, want %s", c.text, got, want)
		}
	}
}

// TestParseHugeInt: a candidate may send any text; reading it must not take long.
func TestParseHugeInt(t *testing.T) {
	most := strings.Repeat("9", MaxIntDigits)
	for _, text := range []string{most, "-" + most, "0x" + strings.Repeat("f", MaxIntDigits)} {
		v, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(Text(v)); err != nil {
			t.Error("as it is written:", err)
		}
	}
	for _, text := range []string{most + "9", "-" + most + "9", "0x" + most + "9", strings.Repeat("9", 4<<20), "[1, " + strings.Repeat("9", 4<<20) + "]"} {
		if _, err := Parse(text); !errors.Is(err, ErrSyntax) {
			t.Errorf("%d digits: %v", len(text), err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	deep := strings.Repeat("[", MaxDepth+2)
	for _, text := range []string{
		"", " ", "x", "Nonesuch", "true", "1 2", "01", "-", "--1", "1e", "1e+", "0x", "0xg", "0b1", "1_000", "1j", "+1",
		"'", "'a", `'\'`, `'\q'`, `'\x4'`, `'\U00110000'`, "'a\nb'", "u'a'", "'a' 'b'", "b'é'", `b'\u0041'`, "'\xff'",
		"[", "[1", "[1,,2]", "[,]", "[1 2]", "(,)", "{,}", "{1:}", "{1: 2, 3}", "{1, 2: 3}", "{[1]}", "{{}: 1}", "{([],): 1}", "{set()}",
		"frozenset([1])", "frozenset({1)", "set", "set(1)", "float('x')", deep, deep + strings.Repeat("]", MaxDepth+2),
	} {
		if v, err := Parse(text); !errors.Is(err, ErrSyntax) {
			t.Errorf("Parse(%.40q) = %v, %v; want ErrSyntax", text, v, err)
		}
	}
	if _, err := Parse(strings.Repeat(" ", MaxTextBytes+1)); !errors.Is(err, ErrSyntax) {
		t.Errorf("text over the limit: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"None", "[1, -2.5e-3, 'a\\n\\ud800', b'\\xff', (True,), {1, 2}, {'k': frozenset({nan})}]", "{1: 2, 1.0: 3}", "float('-inf')", "((((", "'\\U0001f600",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := Parse(text)
		if err != nil {
			if !errors.Is(err, ErrSyntax) {
				t.Fatalf("not an ErrSyntax: %v", err)
			}
			return
		}
		again, err := Parse(Text(v))
		if err != nil {
			t.Fatalf("%q was written as %q, which does not read back: %v", text, Text(v), err)
		}
		if Key(v) != Key(again) || Text(v) != Text(again) {
			t.Fatalf("%q came back as %q", Text(v), Text(again))
		}
	})
}
