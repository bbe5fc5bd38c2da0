package events

import (
	"math/bits"
	"slices"
	"strings"
)

// Bounds of Probes.
const (
	MaxProbes      = 256 // of one kind
	MaxProbedTests = 256
)

// Probe is a kind of the changes or places of a ground truth that tells tests apart.
type Probe string

// The kinds of probes.
const (
	// ProbeMutants are programs with one change. A test hits those that fail it.
	ProbeMutants Probe = "mutants"
	// ProbeBranches are the ways that the program can go. A test hits those that it takes.
	ProbeBranches Probe = "branches"
)

var (
	probeKinds = []Probe{ProbeMutants, ProbeBranches}
	codeProbe  = word(probeKinds)
)

// JoinProbes returns kinds as Plan.Probes holds them.
func JoinProbes(kinds ...Probe) string { return joinKinds(probeKinds, kinds) }

// ProbeKinds returns the kinds of probes that the plan asks for.
func (p *Plan) ProbeKinds() []Probe { return splitKinds[Probe](p.Probes) }

// joinKinds returns those of all that are in kinds, separated by commas.
func joinKinds[K ~string](all, kinds []K) string {
	var b strings.Builder
	for _, kind := range all {
		if slices.Contains(kinds, kind) {
			if b.Len() > 0 {
				b.WriteByte(',')
			}
			b.WriteString(string(kind))
		}
	}
	return b.String()
}

func splitKinds[K ~string](text string) []K {
	var kinds []K
	for kind := range strings.SplitSeq(text, ",") {
		if kind != "" {
			kinds = append(kinds, K(kind))
		}
	}
	return kinds
}

// Probes holds which probes of its ground truth each test of a group hits, for recipes
// that reward it. No answer takes part. Row i is test i of CodeExecuted.ProbedTests.
type Probes struct {
	Probe  Probe  `msgpack:"probe"`
	Engine string `msgpack:"engine"` // name and version of the program that chose the probes
	Total  int    `msgpack:"total"`  // probes of the ground truth
	Hash   string `msgpack:"sha256"` // of the probes
	Hits   []Bits `msgpack:"hits"`   // one row per test, one bit per probe

	// Difficulty of the ground truth, from 0 to 1; branches only.
	Difficulty float64 `msgpack:"difficulty,omitempty"`
}

func (p *Probes) fields(c *coder) {
	field(c, "probe", &p.Probe, codeProbe)
	field(c, "engine", &p.Engine, text)
	field(c, "total", &p.Total, integer)
	field(c, "sha256", &p.Hash, text)
	field(c, "hits", &p.Hits, bitRows)
	optional(c, "difficulty", &p.Difficulty, float)
}

// NewProbes returns Probes without a hit.
func NewProbes(probe Probe, engine, hash string, total, tests int) Probes {
	p := Probes{Probe: probe, Engine: engine, Total: total, Hash: hash, Hits: make([]Bits, tests)}
	for i := range p.Hits {
		p.Hits[i] = make(Bits, p.rowBytes())
	}
	return p
}

// Hit adds that a test hits a probe.
func (p *Probes) Hit(test, probe int) { p.Hits[test].set(probe) }

func (p *Probes) rowBytes() int { return (p.Total + 7) / 8 }

func (p *Probes) validate() error {
	if !slices.Contains(probeKinds, p.Probe) {
		return invalid("probe", "%q is no kind of probes", clip(string(p.Probe)))
	}
	if err := checkToken("engine", p.Engine); err != nil {
		return err
	}
	if !isHex(p.Hash, 64) {
		return invalid("sha256", "want 64 hex digits, have %q", clip(p.Hash))
	}
	if err := checkCount("total", p.Total, MaxProbes); err != nil {
		return err
	}
	if err := checkCount("hits", len(p.Hits), MaxProbedTests); err != nil {
		return err
	}
	if !(p.Difficulty >= 0 && p.Difficulty <= 1) {
		return invalid("difficulty", "%v is outside 0 to 1", p.Difficulty)
	}
	for i, row := range p.Hits {
		if len(row) != p.rowBytes() || len(row) > 0 && 8*(len(row)-1)+bits.Len8(row[len(row)-1]) > p.Total {
			return invalid(at("hits", i), "%d bytes, or a bit too many, for %d probes", len(row), p.Total)
		}
	}
	return nil
}

// Probed returns the probes of a kind; nil if they were not measured.
func (e *CodeExecuted) Probed(kind Probe) *Probes {
	for i := range e.Probes {
		if e.Probes[i].Probe == kind {
			return &e.Probes[i]
		}
	}
	return nil
}

// ProbedTests returns the distinct kept tests of a group with their true values, at
// most MaxProbedTests. Tests that were lost to infrastructure failures are left out.
func (e *CodeExecuted) ProbedTests() []CrossTest {
	var tests []CrossTest
	seen := map[CrossTest]bool{}
	e.keptTests(func(t *ExecutedTest) {
		if test := (CrossTest{t.Call, t.Expected}); !seen[test] && len(tests) < MaxProbedTests {
			seen[test] = true
			tests = append(tests, test)
		}
	})
	return tests
}
