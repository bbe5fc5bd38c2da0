package dashboard

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"codea1/events"
)

// Snapshot is a State in the form of the page and /api/state. A number that is
// not known is null. Times are RFC 3339, durations seconds, shares 0 to 1.
type Snapshot struct {
	Run        string     `json:"run"`
	Attempt    int        `json:"attempt"`
	Inherited  int        `json:"inherited_attempts,omitempty"` // of Attempt, those that a fork has from its origin
	Started    *time.Time `json:"started"`
	Last       *time.Time `json:"last"`
	Newest     string     `json:"newest"` // type and group of the newest event
	ProblemSet string     `json:"problem_set"`
	Problems   int        `json:"problems"`
	Progress
	Reason          string        `json:"reason"` // why the run finished
	SecondsLeft     number        `json:"seconds_left"`
	EventsPerSecond number        `json:"events_per_second"`
	EventCount      int64         `json:"event_count"`
	Quarantined     int64         `json:"quarantined"`
	Events          []object      `json:"events"`
	Rewarded        int64         `json:"rewarded"`
	Dropped         int64         `json:"dropped"`
	Drops           []object      `json:"drops"`
	RecentDrops     []Drop        `json:"recent_drops"` // newest first
	Book            object        `json:"book"`
	Latest          object        `json:"latest"` // newest step with a rewarded group
	Policies        []object      `json:"policies"`
	WithoutTest     bool          `json:"without_test"` // the run has no Test LLM
	Stages          []stageView   `json:"stages"`
	Replicas        []Replica     `json:"replicas"` // in the order of Stages
	Evals           []object      `json:"evals"`
	Compared        []comparison  `json:"compared"` // the first evaluation and the newest
	Binding         Binding       `json:"binding"`  // what the last step waited for
	Refusals        []Refusal     `json:"refusals"` // newest messages that are no events, newest first
	Examples        []exampleView `json:"examples"`
	Build           string        `json:"build"`
	Config          string        `json:"config"`
	Machine         string        `json:"machine"`
	Report          string        `json:"report"`
	Budget          number        `json:"budget"`
	Headline        string        `json:"headline"`
	Series          object        `json:"series"`

	clock int64 // of the series
}

// exampleView names a group with an answer that fails a new test.
type exampleView struct {
	Step    int    `json:"step"`
	Group   string `json:"group"`
	Problem string `json:"problem"`
	Test    string `json:"test"`
	Got     string `json:"got"`
	Passed  int    `json:"passed"`
	Ran     int    `json:"ran"`
}

// object is a JSON object.
type object = map[string]any

// number is a float64 with five digits; null for NaN and infinities, which JSON
// does not have.
type number float64

// unknown is a number that is not known.
var unknown = number(math.NaN())

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(n), 'g', 5, 64), nil
}

// stageView is a stage of the run with the sums over its replicas.
type stageView struct {
	Stage     string        `json:"stage"`
	Consumes  []events.Type `json:"consumes"` // empty for all
	Makes     []events.Type `json:"makes"`
	Replicas  int           `json:"replicas"` // replicas with a heartbeat
	InFlight  int           `json:"in_flight"`
	PerSecond number        `json:"per_second"`
	Lag       int64         `json:"lag"`  // of the newest heartbeat
	Busy      number        `json:"busy"` // mean of the replicas
	Handled   int64         `json:"handled"`
	Failed    int64         `json:"failed"`
	Dropped   int64         `json:"dropped"` // groups
	Role      events.Role   `json:"role"`
	Version   *int          `json:"version"`   // of the policy that it samples with, or made last
	Staleness *int          `json:"staleness"` // versions behind the trained one
}

// Snapshot returns the snapshot of the state, which shares no memory with it.
func (s *State) Snapshot() Snapshot { return s.snapshot(-1) }

// snapshot returns the snapshot with the points of the series that changed after a
// clock.
func (s *State) snapshot(since int64) Snapshot {
	step, point := s.Series.Last()
	out := Snapshot{
		Run: s.Run, Attempt: s.Attempt, Inherited: s.Inherited, Started: known(s.Started), Last: known(s.Last), Newest: s.Newest,
		ProblemSet: s.ProblemSet, Problems: s.Problems, Progress: s.Progress(), Reason: s.Finished,
		SecondsLeft: number(math.NaN()), EventsPerSecond: number(s.PerSecond()), EventCount: s.Total(), Quarantined: s.Quarantined,
		Events: counts(s.Events), Rewarded: s.Rewarded, Dropped: s.Dropped, Drops: counts(s.Drops),
		RecentDrops: []Drop{}, Policies: []object{}, Evals: []object{},
		Book:   object{"size": s.Book.Size(), "entered": s.Book.Entered, "left": s.Book.Left},
		Latest: object{"step": step}, Series: s.Series.view(since),
		Compared: []comparison{}, Binding: s.spans.last, Refusals: slices.Clone(s.refusals), Examples: []exampleView{},
		Build: s.Build, Config: cutText(s.Config, maxTextBytes), Machine: s.Machine, Report: s.Report, Budget: number(s.Budget.Seconds()),
		Headline: headline(s), clock: s.Series.clock,
	}
	slices.Reverse(out.Refusals)
	out.Compared = append(out.Compared, s.compared...)
	for _, e := range s.Examples() {
		out.Examples = append(out.Examples, exampleView{e.Step, e.Group, e.Problem, brief(e.Test), brief(e.Got), e.Passed, e.Ran})
	}
	if out.Known {
		out.SecondsLeft = number(out.Left.Seconds())
	}
	for m, name := range measureNames[:wrong] {
		out.Latest[name] = point.means[m].number()
	}
	out.Latest[measureNames[passHist]] = s.Series.LastHist().number()
	out.RecentDrops = append(out.RecentDrops, s.RecentDrops...)
	slices.Reverse(out.RecentDrops)
	for _, role := range slices.Sorted(maps.Keys(s.Policies)) {
		policy := s.Policies[role]
		m := &policy.Metrics
		out.Policies = append(out.Policies, object{
			"role": role, "version": policy.Version, "step": policy.Step,
			"loss": number(m.Loss), "kl": number(m.KL), "entropy": number(m.Entropy), "clip_fraction": number(m.ClipFraction),
			"grad_norm": number(m.GradNorm), "lr": number(m.LearningRate), "seconds": number(m.Seconds),
			"checkpoint": brief(policy.Checkpoint.URI),
		})
	}
	out.WithoutTest = s.Models.WithoutTest()
	out.Stages, out.Replicas = stageViews(s.stages(), s.Replicas)
	if s.Finished == "" {
		out.Binding.Now = busiest(out.Stages)
	}
	s.fill(out.Stages)
	for _, e := range s.evals {
		eval := object{
			"tag": e.Tag, "name": e.Name(), "step": e.Step, "groups": e.Groups, "scored": e.Scored, "dropped": e.Dropped,
			"problems": e.Problems, "answers": e.Answers, // k of avg@k
		}
		for _, f := range EvalFigures {
			eval[f.Name] = number(f.Of(e))
		}
		eval["low"], eval["high"] = number(e.low), number(e.high)
		out.Evals = append(out.Evals, eval)
	}
	return out
}

// stages returns the stages of the run, and the optional ones that have published.
func (s *State) stages() []events.Stage {
	stages := s.Models.Stages()
	for _, w := range s.Models.Workers() {
		if w.Optional && s.Events[w.Makes[0]] > 0 {
			stages = append(stages, w)
		}
	}
	return stages
}

// stageViews returns the views of stages and their replicas in the same order.
// Replicas of unknown stages come last.
func stageViews(of []events.Stage, replicas map[string]Replica) (stages []stageView, all []Replica) {
	for _, s := range of {
		stages = append(stages, stageView{Stage: s.Name, Consumes: s.Consumes, Makes: s.Makes})
	}
	// The replica of a stage with one replica at a time is the one with the newest
	// heartbeat: the others have ended.
	ended := func(r *Replica, i int) bool {
		if of[i].Replicas != events.One {
			return false
		}
		for _, other := range replicas {
			if other.Stage == r.Stage && (other.At.After(r.At) || other.At.Equal(r.At) && other.Name > r.Name) {
				return true
			}
		}
		return false
	}
	index := func(name string) int {
		if i := slices.IndexFunc(stages, func(s stageView) bool { return s.Stage == name }); i >= 0 {
			return i
		}
		return len(stages)
	}
	all = []Replica{}
	newest := map[string]time.Time{}
	for _, source := range slices.Sorted(maps.Keys(replicas)) {
		r := replicas[source]
		all = append(all, r)
		i := index(r.Stage)
		if i == len(stages) || ended(&r, i) {
			continue
		}
		s := &stages[i]
		s.Replicas++
		s.InFlight += r.InFlight
		s.PerSecond += r.PerSecond
		s.Handled += r.Handled
		s.Failed += r.Failed
		s.Busy += (r.Busy - s.Busy) / number(s.Replicas)
		if !r.At.Before(newest[r.Stage]) {
			newest[r.Stage], s.Lag = r.At, r.Lag
		}
	}
	slices.SortStableFunc(all, func(a, b Replica) int { return cmp.Compare(index(a.Stage), index(b.Stage)) })
	return stages, all
}

func (m Mean) number() number { return number(m.Value()) }

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func counts[K events.Type | events.DropReason](of map[K]int64) []object {
	out := []object{}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		out = append(out, object{"name": name, "count": of[name]})
	}
	return out
}
