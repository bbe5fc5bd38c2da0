package sandboxfusion

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"codea1/consumers/execution/internal/sandboxtest"
	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
)

func TestMain(m *testing.M) {
	// Most tests wait for a time limit. The flag -parallel overrides this.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(pools.Main(m))
}

var pools = sandboxtest.Pools[sandbox.Config, *sandbox.Pool]{Skip: sandbox.ErrNotIsolated}

// quick is a configuration for tests that have to wait for a time limit: long
// enough for every program that ends on its own, on a busy machine too.
var quick = sandbox.Config{Workers: 1, CallTimeout: sandboxtest.CallTimeout, MemoryBytes: 192 << 20, CacheBytes: -1}

// openPool returns a pool that tests with the same configuration share.
func openPool(t testing.TB, config sandbox.Config) *sandbox.Pool {
	t.Helper()
	return pools.Get(t, config, func() (*sandbox.Pool, error) { return sandbox.Open(t.Context(), config) })
}

// runOne runs one call that must return a value.
func runOne(t *testing.T, p *sandbox.Pool, code, call string) literal.Value {
	t.Helper()
	report, err := p.Run(t.Context(), sandbox.Program{Code: code}, []string{call})
	if err != nil {
		t.Fatal(err)
	}
	if !report.Loads || report.Outcomes[0].Value == nil {
		t.Fatalf("no value: %+v", report)
	}
	return report.Outcomes[0].Value
}

// show writes an outcome as its kind, with the value if there is one.
func show(o sandbox.Outcome) string {
	if o.Value != nil {
		return literal.Text(o.Value)
	}
	return o.Kind.String()
}
