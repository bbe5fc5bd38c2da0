package dashboard

import (
	"iter"
	"maps"
	"math"
	"time"

	"codea1/events"
)

// policyFigures are the figures of a model's update. Their names follow codea1_policy_
// in the metrics and ROLE/ in a Row.
var policyFigures = []struct {
	name, help string
	of         func(*events.PolicyUpdated) float64
}{
	{"version", "Newest version of a model.", func(p *events.PolicyUpdated) float64 { return float64(p.Version) }},
	{"reward", "Mean reward in the newest update.", func(p *events.PolicyUpdated) float64 { return p.Metrics.RewardMean }},
	{"loss", "Loss of the newest update.", func(p *events.PolicyUpdated) float64 { return p.Metrics.Loss }},
	{"kl", "KL divergence to the reference model in the newest update.", func(p *events.PolicyUpdated) float64 { return p.Metrics.KL }},
	{"entropy", "Entropy per token in the newest update, in nats.", func(p *events.PolicyUpdated) float64 { return p.Metrics.Entropy }},
	{"clip_fraction", "Share of the tokens whose ratio was clipped in the newest update.", func(p *events.PolicyUpdated) float64 { return p.Metrics.ClipFraction }},
	{"gradient_norm", "Gradient norm before clipping in the newest update.", func(p *events.PolicyUpdated) float64 { return p.Metrics.GradNorm }},
	{"learning_rate", "Learning rate of the last optimizer step.", func(p *events.PolicyUpdated) float64 { return p.Metrics.LearningRate }},
	{"update_seconds", "Time of the newest update.", func(p *events.PolicyUpdated) float64 { return p.Metrics.Seconds }},
	{"ratio", "Mean ratio of a token's probabilities, trainer over sampler or over the old log-probs computed again, in the newest update.", func(p *events.PolicyUpdated) float64 { return p.Metrics.RatioMean }},
	{"mismatch_kl", "KL divergence of the sampler from the trainer before the newest update, in nats per token; only with --old-log-probs=recomputed.", mismatch(func(m *events.Mismatch) float64 { return m.KL })},
	{"mismatch_max", "Largest difference of the log-probs of sampler and trainer before the newest update, in nats; only with --old-log-probs=recomputed.", mismatch(func(m *events.Mismatch) float64 { return m.Max })},
	{"mismatch_truncated", "Share of the tokens with a truncated importance weight in the newest update; only with --old-log-probs=recomputed.", mismatch(func(m *events.Mismatch) float64 { return m.Truncated })},
	{"response_tokens", "Mean length of a response in the newest update, in tokens.", func(p *events.PolicyUpdated) float64 {
		return float64(p.Metrics.Tokens) / float64(p.Metrics.Sequences)
	}},
}

// mismatch returns a figure of the mismatch of sampler and trainer, NaN if it was not
// measured.
func mismatch(of func(*events.Mismatch) float64) func(*events.PolicyUpdated) float64 {
	return func(p *events.PolicyUpdated) float64 {
		if p.Metrics.Mismatch == nil {
			return math.NaN()
		}
		return of(p.Metrics.Mismatch)
	}
}

// The staleness of a model is a figure of the groups, not of an update.
const stalenessName, stalenessHelp = "staleness", "Versions that the sampling policy was behind, in the newest rewarded group."

// staleness returns the staleness of a group's samples in a role. Version v is trained
// on step v.
func staleness(p *events.GroupRewarded, role events.Role) float64 {
	version := p.CodeVersion
	if role == events.RoleTest {
		version = p.TestVersion
	}
	return float64(p.Plan.Step - 1 - version)
}

// stepFigures are the figures of the groups of a step, by their names in a Row.
var stepFigures = []struct {
	name, help string
	of         func(*Point) float64
}{
	{"groups/rewarded", "Groups of the step that were rewarded.", func(p *Point) float64 { return float64(p.Groups) }},
	{"groups/dropped", "Groups of the step that were dropped.", func(p *Point) float64 { return float64(p.Dropped) }},
	{"tests/pass_new", "Mean share of a suite's tests that its answer passes.", func(p *Point) float64 { return p.means[passNew].Value() }},
	{"tests/pass_historical", "Mean share of the historical tests that an answer passes.", func(p *Point) float64 { return p.means[passHist].Value() }},
	{"tests/kept", "Mean number of kept tests of a suite.", func(p *Point) float64 { return p.means[kept].Value() }},
	{"tests/wrong_or_discarded", "Mean number of tests of a suite that are wrong as stated or discarded.", func(p *Point) float64 { return p.means[wrongOrDiscarded].Value() }},
	{"book/size", "Tests in the Mistake Book after the step.", func(p *Point) float64 { return float64(p.Size) }},
	{"book/entered", "Tests that entered the Mistake Book in the step.", func(p *Point) float64 { return float64(p.Entered) }},
	{"book/left", "Tests that left the Mistake Book in the step.", func(p *Point) float64 { return float64(p.Left) }},
}

// heldOut begins the names of an evaluation's figures in a Row.
const heldOut = "heldout/"

// RowFigures returns the name and the meaning of each figure that a Row can have, in a
// fixed order.
func RowFigures() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
			for _, f := range policyFigures {
				if !yield(string(role)+"/"+f.name, f.help) {
					return
				}
			}
			if !yield(string(role)+"/"+stalenessName, stalenessHelp) {
				return
			}
		}
		for _, f := range stepFigures {
			if !yield(f.name, f.help) {
				return
			}
		}
		for _, f := range EvalFigures {
			if !yield(heldOut+f.Name, f.Help) {
				return
			}
		}
		_ = yield(heldOut+"avg_low", "Lower end of the 95% interval of avg@k over problems.") &&
			yield(heldOut+"avg_high", "Upper end of the 95% interval of avg@k over problems.")
	}
}

// Row holds the figures of a trained step or of a complete evaluation. A figure
// without a measurement is left out.
type Row struct {
	Step    int // the step, or the steps trained before the evaluation
	Time    time.Time
	Figures map[string]float64
}

// Rows is a pure projection from the events of a run to its rows, one for each step.
// Unlike State, it merges no steps.
type Rows struct {
	state *State
	steps map[int]*stepRow // that are not trained yet
	done  int              // newest step with a row
	eval  *Eval            // newest evaluation with a row
}

type stepRow struct {
	Point
	staleness map[events.Role]Mean
	policies  map[events.Role]*events.PolicyUpdated
}

// NewRows returns the projection before the first event.
func NewRows() *Rows { return &Rows{state: NewState(), steps: map[int]*stepRow{}} }

// State returns the state of the run, which must not be kept or changed.
func (r *Rows) State() *State { return r.state }

// Apply folds in the next event and returns the rows that it completes, by step. No
// row has a figure of the large events.
func (r *Rows) Apply(e *events.Event) (rows []Row) {
	switch e.Type {
	case events.TypeProblemPosed, events.TypeCodeSampled, events.TypeTestsSampled, events.TypeCodeExecuted:
		return nil
	}
	before := r.state.Book
	r.state.Apply(e)
	switch p := e.Payload.(type) {
	case *events.GroupRewarded:
		if s := r.step(p.Plan.Purpose, p.Plan.Step); s != nil {
			book := &r.state.Book
			s.reward(p, book.Entered-before.Entered, book.Left-before.Left, book.Size())
			for role := range r.state.Staleness {
				mean := s.staleness[role]
				mean.add(staleness(p, role))
				s.staleness[role] = mean
			}
		}
	case *events.GroupDropped:
		if s := r.step(p.Purpose, p.Step); s != nil {
			s.Dropped++
		}
	case *events.PolicyUpdated:
		if s := r.step(events.PurposeTrain, p.Step); s != nil {
			s.policies[p.Role] = p
		}
	}
	for trained := r.state.Trained(); r.done < trained; {
		r.done++
		if s := r.steps[r.done]; s != nil {
			delete(r.steps, r.done)
			rows = append(rows, Row{Step: r.done, Time: e.Time, Figures: s.figures()})
		}
	}
	if n := len(r.state.evals); n > 0 && r.state.evals[n-1] != r.eval && r.state.evals[n-1].Complete() {
		r.eval = r.state.evals[n-1]
		rows = append(rows, Row{Step: r.eval.Step, Time: e.Time, Figures: r.eval.figures()})
	}
	return rows
}

// step returns the row of a training step that is not trained yet; nil for another.
func (r *Rows) step(purpose events.Purpose, step int) *stepRow {
	s := r.steps[step]
	if s != nil || purpose != events.PurposeTrain || step <= r.done || len(r.steps) >= maxOpenSteps {
		return s
	}
	s = &stepRow{staleness: map[events.Role]Mean{}, policies: map[events.Role]*events.PolicyUpdated{}}
	s.Size = r.state.Book.Size()
	r.steps[step] = s
	return s
}

// figures returns the figures of a trained step.
func (s *stepRow) figures() map[string]float64 {
	all := map[string]float64{}
	for role, p := range s.policies {
		for _, f := range policyFigures {
			all[string(role)+"/"+f.name] = f.of(p)
		}
	}
	for role, mean := range s.staleness {
		all[string(role)+"/"+stalenessName] = mean.Value()
	}
	for _, f := range stepFigures {
		all[f.name] = f.of(&s.Point)
	}
	return measured(all)
}

// figures returns the figures of an evaluation.
func (e *Eval) figures() map[string]float64 {
	all := map[string]float64{}
	for _, f := range EvalFigures {
		all[heldOut+f.Name] = f.Of(e)
	}
	all[heldOut+"avg_low"], all[heldOut+"avg_high"] = e.AvgInterval()
	return measured(all)
}

// measured removes the figures without a measurement.
func measured(figures map[string]float64) map[string]float64 {
	maps.DeleteFunc(figures, func(_ string, v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	return figures
}
