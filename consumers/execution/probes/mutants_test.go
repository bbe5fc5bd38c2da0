package probes

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"codea1/consumers/execution/internal/sandboxtest"
	"codea1/consumers/execution/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pools.Main(m)) }

var pools = sandboxtest.Pools[int, *sandbox.Pool]{Skip: sandbox.ErrNotIsolated}

// open returns a pool with limits for a busy machine.
func open(t *testing.T) *sandbox.Pool {
	t.Helper()
	return pools.Get(t, 0, func() (*sandbox.Pool, error) {
		return sandbox.Open(t.Context(), sandbox.Config{JobTimeout: 120 * time.Second})
	})
}

// TestMutants has every operator. The lines are those of the mutants that differ from the
// program, in order.
func TestMutants(t *testing.T) {
	pool := open(t)
	for _, c := range []struct {
		code string
		want []string
	}{
		{"x = a + b\n", strings.Split("x = a - b|x = a * b|x = a / b|x = a // b|x = a % b|x = a ** b|x = a >> b|x = a << b|x = a | b|x = a & b|x = a ^ b", "|x")},
		{"x = é(b) == None\n", []string{"x = é(b)  is not  None"}},
		{"x = 'é' < 2\n", []string{"x = 'é'  ==  2", "x = 'é'  !=  2", "x = 'é'  <=  2", "x = 'é'  >  2", "x = 'é'  >=  2", "x = 'é' <  3", "x = 'é' <  1"}},
		{"x = a is not None\n", []string{"x = a  is  None"}},
		{"x = a in b\n", nil},
		{"x = -a\n", []string{"x = +a", "x = ~a", "x = not a", "x = a"}},
		{"x = +a\n", []string{"x = -a", "x = ~a", "x = not a"}},
		{"x = not a\n", []string{"x =  a"}},
		{"x = True and a or False\n", []string{"x = False and a or False", "x = True or a or False", "x = True and a and False", "x = True and a or True"}},
		{"while a:\n    break\n", []string{"while  not a:", "    continue"}},
		{"if a:\n    pass\nelif b:\n    pass\n", []string{"if  not a:"}},
		{"if (a):\n    pass\n", []string{"if  not (a):"}},
		{"x = a if b else c\n", []string{"x = a if  not b else c"}},
		{"for x in a(b):\n    continue\n", []string{"for x in []:", "    break"}},
		{"try:\n    a\nexcept (B, c.D) as e:\n    pass\nexcept E:\n    pass\nexcept:\n    pass\n", []string{"except (NoSuchException, c.D) as e:", "except NoSuchException:"}},
		{"@a\n@b(c)\ndef f():\n    pass\n", []string{"", ""}},
		{"x = 1.5j\n", []string{"x =  (1+1.5j)", "x =  (-1+1.5j)"}},
		{"x += a\ndef f(*a, b: int, **c):\n    return g(*a, **c)\n", nil},
		{"x = f'{a + 1} and' 'or'\n", nil},
	} {
		if c.code == "x = a + b\n" {
			for i := 1; i < len(c.want); i++ {
				c.want[i] = "x" + c.want[i]
			}
		}
		mutants, err := Mutants(t.Context(), pool, c.code)
		if err != nil {
			t.Errorf("%q: %v", c.code, err)
			continue
		}
		var got []string
		for _, m := range mutants {
			before, after := strings.Split(c.code, "\n"), strings.Split(m.Code, "\n")
			for i := range after {
				if i >= len(before) || after[i] != before[i] {
					got = append(got, after[i])
					break
				}
			}
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", c.code, d)
		}
	}
	if _, err := Mutants(t.Context(), pool, "x = ("); err == nil || !strings.Contains(err.Error(), "SyntaxError") {
		t.Errorf("mutants of no program: %v", err)
	}
}

// A sample has different programs from all parts of a program, and no change that often
// makes a program run without an end.
func TestSample(t *testing.T) {
	pool := open(t)
	var long strings.Builder
	long.WriteString("def f(x):\n")
	for i := range 40 {
		fmt.Fprintf(&long, "    x = x + %d\n", i)
	}
	long.WriteString("    return x\n")
	all, err := Mutants(t.Context(), pool, long.String())
	if err != nil {
		t.Fatal(err)
	}
	sample, err := Sample(t.Context(), pool, long.String(), 32)
	if err != nil || len(sample) != 32 || len(all) <= 40*8 {
		t.Fatalf("%d of %d mutants, %v", len(sample), len(all), err)
	}
	lines := map[int]bool{}
	for _, m := range sample {
		if !slices.Contains(all, m) {
			t.Errorf("%q is none of all mutants", m.Code)
		}
		for i, line := range strings.Split(m.Code, "\n") {
			if line != strings.Split(long.String(), "\n")[i] {
				lines[i] = true
			}
		}
	}
	if len(lines) < 28 || !lines[1] {
		t.Errorf("changes in %d of 40 lines", len(lines))
	}
	again, err := Sample(t.Context(), pool, long.String(), 32)
	if diff := cmp.Diff(sample, again); err != nil || diff != "" {
		t.Errorf("%v, another sample:\n%s", err, diff)
	}
	for code, want := range map[string][]string{
		"x = a + b\n": strings.Split("x = a - b;x = a * b;x = a / b;x = a // b;x = a % b;x = a >> b;x = a | b;x = a & b;x = a ^ b", ";"),
		"while x < 3:\n    x += 1\n    if x: break\ny = True\n": {"while x < 3:\n    x += 1\n    if x: break\ny = False"},
		"pass\n": nil,
	} {
		mutants, err := Sample(t.Context(), pool, code, 32)
		var got []string
		for _, m := range mutants {
			got = append(got, strings.TrimSuffix(m.Code, "\n"))
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", code, err, diff)
		}
	}
}
