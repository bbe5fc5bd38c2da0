package minipy

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func ints(values ...int) List {
	list := List{}
	for _, v := range values {
		list = append(list, Int(v))
	}
	return list
}

func TestCall(t *testing.T) {
	xs := ints(3, -1, 2, 2)
	tests := []struct {
		source string
		args   []Value
		want   string // a literal or the name of an exception
	}{
		{"def solve(xs):\n    return sum(x * x for x in xs if x % 2 == 0)", []Value{xs}, "8"},
		{"def solve(xs):\n    return [-x for x in xs][::-1]", []Value{xs}, "[-2,-2,1,-3]"},
		{"def solve(xs):\n    return xs[-2:]", []Value{xs}, "[2,2]"},
		{"def solve(xs):\n    return max((x for x in xs if x > 5), default=0)", []Value{xs}, "0"},
		{"def solve(xs):\n    return max(xs)", []Value{List{}}, "ValueError"},
		{"def solve(xs):\n    return xs[0]", []Value{List{}}, "IndexError"},
		{"def solve(xs):\n    return len(x for x in xs)", []Value{xs}, "TypeError"},
		{"def solve(n):\n    return -7 // n", []Value{Int(2)}, "-4"},
		{"def solve(n):\n    return -7 % n", []Value{Int(3)}, "2"},
		{"def solve(n):\n    return 1 % n", []Value{Int(0)}, "ZeroDivisionError"},
		{"def solve(xs):\n    for i, x in enumerate(xs):\n        if x < 0:\n            return i\n    return -1", []Value{xs}, "1"},
		{"def solve(xs):\n    t = 0\n    for x in xs:\n        t += x\n    return t", []Value{xs}, "6"},
		{"def solve(s):\n    return ''.join(c.upper() for c in s if c not in 'aeiou')", []Value{Str("hello")}, "'HLL'"},
		{"def solve(s):\n    return max(s.split(), key=len, default='')", []Value{Str("a bcd efg")}, "'bcd'"},
		{"def solve(a, b):\n    return a if not a < b else b - 1", []Value{Int(1), Int(2)}, "1"},
		{"def solve(n):\n    return sum(map(int, str(abs(n))))", []Value{Int(-123)}, "6"},
		{"def solve(n):\n    return n == 3", []Value{Int(3)}, "True"},
		{"def solve(xs):\n    return sum(a * b for a, b in zip(xs, xs[1:]))", []Value{xs}, "-1"},
		{"def solve(n):\n    if n > 3:\n        return n", []Value{Int(3)}, "None"},
	}
	for _, test := range tests {
		f, err := Parse(test.source)
		if err != nil {
			t.Errorf("%s: %v", test.source, err)
			continue
		}
		if diff := cmp.Diff(test.source, f.Source()); diff != "" {
			t.Errorf("source does not round-trip:\n%s", diff)
		}
		got := ""
		if v, err := f.Call(test.args...); err != nil {
			got = err.Error()
		} else {
			got = Literal(v)
		}
		if got != test.want {
			t.Errorf("%s\n= %s, want %s", test.source, got, test.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, source := range []string{
		"", "x = 1", "def solve(xs):", "def solve(xs):\n    pass", "def solve(xs):\nreturn 1",
		"def solve(n):\n    return 1 < n < 3", "def solve(n):\n    return (1", "def solve(n):\n    return n[]",
		"def solve(n):\n    return 'a", "def solve(n):\n    return n n", "def solve(n):\n    return n[::1:]",
		"def solve(n):\n    return 1\nx", "def solve(n):\n    import os", "def solve(n):\n    return 007",
		"def solve(n):\n    return lambda", "def solve(n):\n    return n\n  return n",
	} {
		if f, err := Parse(source); !errors.Is(err, ErrSyntax) {
			t.Errorf("Parse(%q) = %v, %v; want ErrSyntax", source, f, err)
		}
	}
}

func TestCallIsBounded(t *testing.T) {
	f, err := Parse("def solve(n):\n    t = 0\n    for a in range(n):\n        for b in range(n):\n            t += 1\n    return t")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Call(Int(5000)); !errors.Is(err, ErrSteps) {
		t.Errorf("a long loop ends with %v, want ErrSteps", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("def solve(xs):\n    return sum(x for x in xs if x > 3)")
	f.Add("def solve(n):\n    if not n:\n        return -n ** 2\n    return [n, 'a'][0:1]")
	f.Fuzz(func(t *testing.T, source string) {
		parsed, err := Parse(source)
		if err != nil {
			return
		}
		printed := parsed.Source()
		again, err := Parse(printed)
		if err != nil {
			t.Fatalf("%q printed as %q: %v", source, printed, err)
		}
		if again.Source() != printed {
			t.Fatalf("%q printed as %q, then as %q", source, printed, again.Source())
		}
		_, _ = again.Call(List{Int(1), Int(-2)})
	})
}
