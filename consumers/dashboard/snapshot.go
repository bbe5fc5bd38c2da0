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
	Run             string       `json:"run"`
	Attempt         int          `json:"attempt"`
	Started         *time.Time   `json:"started"`
	Last            *time.Time   `json:"last"`
	ProblemSet      string       `json:"problem_set"`
	Problems        int          `json:"problems"`
	Phase           Phase        `json:"phase"`
	Tag             string       `json:"tag"`    // of the running evaluation
	Reason          string       `json:"reason"` // why the run finished
	Step            int          `json:"step"`
	Steps           int          `json:"steps"`
	Done            int          `json:"done"`
	Total           int          `json:"total"`
	SecondsLeft     number       `json:"seconds_left"`
	EventsPerSecond number       `json:"events_per_second"`
	EventCount      int64        `json:"event_count"`
	Unreadable      int64        `json:"unreadable"`
	Events          []namedCount `json:"events"`
	Rewarded        int64        `json:"rewarded"`
	Dropped         int64        `json:"dropped"`
	Drops           []namedCount `json:"drops"`
	RecentDrops     []Drop       `json:"recent_drops"` // newest first
	Book            bookView     `json:"book"`
	Latest          latestView   `json:"latest"` // newest step with a rewarded group
	Policies        []policyView `json:"policies"`
	Stages          []stageView  `json:"stages"`
	Replicas        []Replica    `json:"replicas"` // in the order of Stages
	Evals           []evalView   `json:"evals"`
	Series          seriesView   `json:"series"`
}

// number is a float64 with five digits; null for NaN and infinities, which JSON
// does not have.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(n), 'g', 5, 64), nil
}

type namedCount struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

type bookView struct {
	Size    int `json:"size"`
	Entered int `json:"entered"`
	Left    int `json:"left"`
}

type latestView struct {
	Step     int    `json:"step"`
	Code     number `json:"reward_code"`
	Test     number `json:"reward_test"`
	PassNew  number `json:"pass_new"`
	PassHist number `json:"pass_hist"`
	Kept     number `json:"kept"`

	WrongOrDiscarded number `json:"wrong_or_discarded"`
}

type policyView struct {
	Role         string `json:"role"`
	Version      int    `json:"version"`
	Step         int    `json:"step"`
	Loss         number `json:"loss"`
	KL           number `json:"kl"`
	Entropy      number `json:"entropy"`
	ClipFraction number `json:"clip_fraction"`
	GradNorm     number `json:"grad_norm"`
	LearningRate number `json:"lr"`
	Seconds      number `json:"seconds"`
}

// stageView is a stage of events.Stages with the sums over its replicas.
type stageView struct {
	Stage     string        `json:"stage"`
	Consumes  []events.Type `json:"consumes"` // empty for all
	Makes     []events.Type `json:"makes"`
	Replicas  int           `json:"replicas"` // replicas with a heartbeat
	InFlight  int           `json:"in_flight"`
	PerSecond number        `json:"per_second"`
	Lag       int64         `json:"lag"` // of the newest heartbeat
}

type evalView struct {
	Tag           string `json:"tag"`
	Name          string `json:"name"`
	Step          int    `json:"step"`
	Groups        int    `json:"groups"`
	Scored        int    `json:"scored"`
	Dropped       int    `json:"dropped"`
	Problems      int    `json:"problems"`
	Answers       int    `json:"answers"` // k of avg@k
	Avg           number `json:"avg"`
	Validity      number `json:"validity"`
	DefectFinding number `json:"defect_finding"`
}

// seriesView holds one column per line of a chart; all are as long as Step.
type seriesView struct {
	Stride   int      `json:"stride"` // steps per row
	Step     []int    `json:"step"`   // first step of a row
	Code     []number `json:"reward_code"`
	Test     []number `json:"reward_test"`
	PassNew  []number `json:"pass_new"`
	PassHist []number `json:"pass_hist"`
	Kept     []number `json:"kept"`
	Size     []int    `json:"book_size"`
	Entered  []int    `json:"book_entered"`
	Left     []int    `json:"book_left"`

	WrongOrDiscarded []number `json:"wrong_or_discarded"`
}

// Snapshot returns the snapshot of the state, which shares no memory with it.
func (s *State) Snapshot() Snapshot {
	p := s.Progress()
	out := Snapshot{
		Run: s.Run, Attempt: s.Attempt, Started: known(s.Started), Last: known(s.Last),
		ProblemSet: s.ProblemSet, Problems: s.Problems,
		Phase: p.Phase, Tag: p.Tag, Reason: s.Finished, Step: p.Step, Steps: p.Steps, Done: p.Done, Total: p.Total,
		SecondsLeft: number(math.NaN()), EventsPerSecond: number(s.PerSecond()), EventCount: s.Total(), Unreadable: s.Unreadable,
		Events: counts(s.Events), Rewarded: s.Rewarded, Dropped: s.Dropped, Drops: counts(s.Drops),
		RecentDrops: []Drop{}, Policies: []policyView{}, Evals: []evalView{},
		Book:   bookView{Size: s.Book.Size(), Entered: s.Book.Entered, Left: s.Book.Left},
		Series: s.Series.view(),
	}
	if p.Known {
		out.SecondsLeft = number(p.Left.Seconds())
	}
	step, point := s.Series.Last()
	out.Latest = latestView{
		Step: step, Code: point.Code.number(), Test: point.Test.number(),
		PassNew: point.PassNew.number(), PassHist: s.Series.LastHist().number(),
		Kept: point.Kept.number(), WrongOrDiscarded: point.WrongOrDiscarded.number(),
	}
	out.RecentDrops = append(out.RecentDrops, s.RecentDrops...)
	slices.Reverse(out.RecentDrops)
	for _, role := range slices.Sorted(maps.Keys(s.Policies)) {
		policy := s.Policies[role]
		m := policy.Metrics
		out.Policies = append(out.Policies, policyView{
			Role: string(role), Version: policy.Version, Step: policy.Step,
			Loss: number(m.Loss), KL: number(m.KL), Entropy: number(m.Entropy), ClipFraction: number(m.ClipFraction),
			GradNorm: number(m.GradNorm), LearningRate: number(m.LearningRate), Seconds: number(m.Seconds),
		})
	}
	out.Stages, out.Replicas = stageViews(s.Replicas)
	for _, e := range s.evals {
		out.Evals = append(out.Evals, evalView{
			Tag: e.Tag, Name: e.Name(), Step: e.Step, Groups: e.Groups, Scored: e.Scored, Dropped: e.Dropped,
			Problems: e.Problems, Answers: e.Answers,
			Avg: number(e.Avg()), Validity: number(e.Validity()), DefectFinding: number(e.DefectFinding()),
		})
	}
	return out
}

// stageViews returns the stages in the order of events.Stages and their replicas
// in the same order. Replicas of unknown stages come last.
func stageViews(replicas map[string]Replica) (stages []stageView, all []Replica) {
	for _, s := range events.Stages {
		stages = append(stages, stageView{Stage: s.Name, Consumes: s.Consumes, Makes: s.Makes})
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
		if i == len(stages) {
			continue
		}
		s := &stages[i]
		s.Replicas++
		s.InFlight += r.InFlight
		s.PerSecond += r.PerSecond
		if !r.At.Before(newest[r.Stage]) {
			newest[r.Stage], s.Lag = r.At, r.Lag
		}
	}
	slices.SortStableFunc(all, func(a, b Replica) int { return cmp.Compare(index(a.Stage), index(b.Stage)) })
	return stages, all
}

func (s *Series) view() seriesView {
	step := make([]int, len(s.points))
	for i := range step {
		step[i] = 1 + i*s.stride
	}
	return seriesView{
		Stride: s.stride, Step: step,
		Code: means(s, func(p *Point) Mean { return p.Code }),
		Test: means(s, func(p *Point) Mean { return p.Test }),

		PassNew:          means(s, func(p *Point) Mean { return p.PassNew }),
		PassHist:         means(s, func(p *Point) Mean { return p.PassHist }),
		Kept:             means(s, func(p *Point) Mean { return p.Kept }),
		WrongOrDiscarded: means(s, func(p *Point) Mean { return p.WrongOrDiscarded }),

		Size:    column(s, func(p *Point) int { return p.Size }),
		Entered: column(s, func(p *Point) int { return p.Entered }),
		Left:    column(s, func(p *Point) int { return p.Left }),
	}
}

// column returns a value of each point.
func column[T any](s *Series, of func(*Point) T) []T {
	values := make([]T, len(s.points))
	for i := range s.points {
		values[i] = of(&s.points[i])
	}
	return values
}

func means(s *Series, of func(*Point) Mean) []number {
	return column(s, func(p *Point) number { return of(p).number() })
}

func (m Mean) number() number { return number(m.Value()) }

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func counts[K events.Type | events.DropReason](of map[K]int64) []namedCount {
	out := []namedCount{}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		out = append(out, namedCount{string(name), of[name]})
	}
	return out
}
