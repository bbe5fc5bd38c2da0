package dashboard

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"codea1/events"
)

// Bounds of a State.
const (
	maxRecentDrops = 20
	maxReplicas    = 256  // replicas with a heartbeat
	maxOpenSteps   = 4096 // steps that are not trained yet
	maxRefusals    = 20   // newest messages that are no events
	maxStageNames  = 64
)

// State is a pure projection over the events of a run in the order of the bus.
// All views show it. It reads no clock; every time in it comes from an event. It
// is not safe for concurrent use, but Follower is.
type State struct {
	Run        string
	Attempt    int           // the latest, from 1; 0 before run.started
	Inherited  int           // attempts that a fork has from its origin, with the event that made it
	Started    time.Time     // when the latest attempt started
	Last       time.Time     // the newest event
	Newest     string        // its type and group
	Finished   string        // why the latest attempt ended; empty before that
	Steps      int           // steps planned
	Budget     time.Duration // longest time of the latest attempt; 0 for no limit
	ProblemSet string
	Problems   int           // training problems in the set
	Build      string        // of the program of the latest attempt
	Config     string        // its whole configuration, YAML
	Models     events.Models // of the run
	Machine    string        // that shows the run, in words; empty if unknown
	Report     string        // where the report is written; empty if unknown

	Events      map[events.Type]int64 // by type
	Quarantined int64                 // messages that are no events of the run

	Rewarded    int64 // training groups
	Dropped     int64 // groups of either purpose
	Drops       map[events.DropReason]int64
	RecentDrops []Drop // oldest first

	Policies  map[events.Role]events.PolicyUpdated // the newest
	Staleness map[events.Role]float64              // of the samples of the newest rewarded group
	Replicas  map[string]Replica                   // by the source of their events
	Series    Series                               // means per training step
	Book      Book

	refusals      []Refusal           // newest messages that are no events, oldest first
	dropsBy       map[string]int64    // groups, by stage
	sampled       map[events.Role]int // newest policy version that sampled
	groups        groupIndex
	spans         stepSpans
	evals         evals
	compared      []comparison // computed once for each evaluation, because that takes milliseconds
	examples      examples
	endedGroups   map[int]int // by step; steps that are not trained yet
	groupsPerStep int         // as planned last
	stepTimes     stepTimes
	evalSampled   evalSampled
	rate          rate
}

// Refusal is a message that is no event of the run.
type Refusal struct {
	Position events.Position `json:"position"` // before it, in the order of the bus
	Reason   string          `json:"reason"`
}

// Drop is a group that left the pipeline.
type Drop struct {
	At     time.Time         `json:"at"`
	Group  string            `json:"group"`
	Stage  string            `json:"stage"`
	Reason events.DropReason `json:"reason"`
	Detail string            `json:"detail"`
}

// Replica is the last heartbeat of a replica of a stage.
type Replica struct {
	Name      string    `json:"replica"` // the source of its events
	Stage     string    `json:"stage"`
	At        time.Time `json:"at"`
	Handled   int64     `json:"handled"`
	Failed    int64     `json:"failed"`
	InFlight  int       `json:"in_flight"`
	Lag       int64     `json:"lag"`        // of the stage, in events
	Busy      number    `json:"busy"`       // share of the last interval, 0 to 1 per slot
	PerSecond number    `json:"per_second"` // events handled per second since the heartbeat before
	beat      int
}

// NewState returns the state before the first event.
func NewState() *State {
	return &State{
		Events: map[events.Type]int64{}, Drops: map[events.DropReason]int64{},
		Policies: map[events.Role]events.PolicyUpdated{}, Staleness: map[events.Role]float64{}, Replicas: map[string]Replica{},
		Series: newSeries(), Book: newBook(), endedGroups: map[int]int{},
		examples: newExamples(), dropsBy: map[string]int64{}, sampled: map[events.Role]int{},
		groups: groupIndex{evals: map[string]events.Position{}}, spans: stepSpans{made: map[int]map[string]time.Time{}},
	}
}

// Buffer keeps an event until its group ends, because the group may become an
// example. The message must not be changed afterwards.
func (s *State) Buffer(m *events.Message) { s.examples.add(m) }

// Examples returns examples of all parts of the run, by step.
func (s *State) Examples() []Example { return s.examples.all() }

// Apply folds in the next event. It only counts an event without payload.
func (s *State) Apply(e *events.Event) { s.applyAfter(e, events.Start) }

// applyAfter is Apply with the position before the event.
func (s *State) applyAfter(e *events.Event, before events.Position) {
	s.Run = e.Run
	s.Series.clock++
	s.Events[e.Type]++
	s.Newest = strings.TrimSpace(string(e.Type) + " " + e.Group)
	if e.Time.After(s.Last) {
		s.Last = e.Time
	}
	s.rate.add(e.Time)
	s.spans.note(e, s.Models)
	switch p := e.Payload.(type) {
	case *events.RunStarted:
		s.start(e, p)
	case *events.RunFinished:
		s.Finished = p.Reason
		s.compare()
		if n := len(s.evals); n > 0 && s.evals[n-1].Step == s.Trained() {
			s.evals[n-1].closing = s.Trained() > 0
		}
	case *events.ProblemPosed:
		s.Book.posed(p)
		s.groups.posed(&p.Plan, before)
	case *events.CodeSampled:
		s.sampled[events.RoleCode] = max(s.sampled[events.RoleCode], p.Version)
		s.sampledFor(events.RoleCode, &p.Posed.Plan)
	case *events.TestsSampled:
		s.sampled[events.RoleTest] = max(s.sampled[events.RoleTest], p.Version)
		s.sampledFor(events.RoleTest, &p.Posed.Plan)
	case *events.CodeExecuted:
		s.Series.executed(p)
		s.Book.executed(e.Group, p)
	case *events.GroupRewarded:
		s.reward(e.Group, p)
	case *events.RewardShadowed:
		s.Series.shadow(p)
	case *events.GroupDropped:
		s.drop(e, p)
	case *events.PolicyUpdated:
		s.update(e, p)
	case *events.EvalScored:
		s.evaluated(e, s.evals.score(p))
	case *events.StageHeartbeat:
		s.heartbeat(e, p)
	}
}

func (s *State) start(e *events.Event, p *events.RunStarted) {
	s.Attempt, s.Started, s.Finished = p.Attempt, e.Time, ""
	if p.Origin != nil {
		s.Inherited = p.Attempt
	}
	s.Steps, s.ProblemSet, s.Problems = p.Steps, p.ProblemSet, p.Problems
	s.Build, s.Config, s.Models = p.Build, p.Config, p.Models
	s.examples.plan(p.Steps)
	s.stepTimes.restart(e.Time) // the time between two attempts belongs to no step
}

func (s *State) reward(group string, p *events.GroupRewarded) {
	if p.Plan.Purpose != events.PurposeTrain {
		return
	}
	s.Rewarded++
	s.groupsPerStep = p.Plan.Groups
	s.groupEnded(p.Plan.Step)
	s.examples.rewarded(group, p)
	for _, role := range s.Models.TrainedRoles() {
		s.Staleness[role] = staleness(p, role)
	}
	entered, left := s.Book.apply(group, p.Plan.Step, p.ProblemID, p.Deltas)
	s.groups.add(rowOf(group, p))
	s.Series.reward(p, entered, left, s.Book.Size())
	s.Series.stale(p, s.Models)
}

func (s *State) drop(e *events.Event, p *events.GroupDropped) {
	s.Dropped++
	s.Drops[p.Reason]++
	s.RecentDrops = append(s.RecentDrops, Drop{At: e.Time, Group: e.Group, Stage: p.Stage, Reason: p.Reason, Detail: p.Detail})
	if len(s.RecentDrops) > maxRecentDrops {
		s.RecentDrops = slices.Delete(s.RecentDrops, 0, 1)
	}
	if stage := cutBytes(p.Stage, events.MaxTokenBytes); s.dropsBy[stage] > 0 || len(s.dropsBy) < maxStageNames {
		s.dropsBy[stage]++
	}
	switch p.Purpose {
	case events.PurposeTrain:
		s.Book.release(e.Group)
		s.groups.add(groupRow{Group: e.Group, Step: p.Step, Dropped: p.Reason, Code: unknown, Test: unknown, Pass: unknown})
		s.groupsPerStep = max(s.groupsPerStep, p.Groups)
		s.groupEnded(p.Step)
		s.examples.release(e.Group)
		s.Series.drop(p.Step)
	case events.PurposeEval:
		s.evaluated(e, s.evals.drop(e.Group, p))
	}
}

// groupEnded counts a training group that was rewarded or dropped.
func (s *State) groupEnded(step int) {
	if step > s.Trained() && (s.endedGroups[step] > 0 || len(s.endedGroups) < maxOpenSteps) {
		s.endedGroups[step]++
	}
}

func (s *State) update(e *events.Event, p *events.PolicyUpdated) {
	before := s.Trained()
	s.Series.update(p)
	s.Policies[p.Role] = *p
	s.examples.updated(p)
	trained := s.Trained()
	if trained <= before {
		return
	}
	maps.DeleteFunc(s.endedGroups, func(step, _ int) bool { return step <= trained })
	s.spans.trained(trained, s.stepTimes.lastEnd, s.Models)
	s.stepTimes.trained(e.Time, trained-before)
}

// evaluated records the end of a group of an evaluation. The time of an
// evaluation that an earlier attempt began is not known.
func (s *State) evaluated(e *events.Event, eval *Eval) {
	if eval == nil {
		return
	}
	if eval.ended() == 1 {
		eval.attempt = s.Attempt
	}
	if !eval.Complete() {
		return
	}
	eval.low, eval.high = eval.AvgInterval()
	s.compare()
	if eval.attempt == s.Attempt {
		eval.took = max(0, e.Time.Sub(s.stepTimes.lastEnd))
	}
	s.stepTimes.lastEnd = e.Time
}

func (s *State) compare() {
	if before, after := s.Before(), s.After(); before != nil || after != nil {
		s.compared = compare(before, after)
	}
}

func (s *State) heartbeat(e *events.Event, p *events.StageHeartbeat) {
	now := Replica{
		Name: e.Source, Stage: p.Stage, At: e.Time, Handled: p.Handled, Failed: p.Failed,
		InFlight: p.InFlight, Lag: p.Pending, Busy: number(p.Busy), beat: p.Beat,
	}
	before, known := s.Replicas[e.Source]
	// After a lower number, the process was started again under the same name.
	if seconds := e.Time.Sub(before.At).Seconds(); known && p.Beat > before.beat && seconds > 0 {
		now.PerSecond = number(float64(p.Handled-before.Handled) / seconds)
	}
	if !known && len(s.Replicas) >= maxReplicas {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(s.Replicas)), func(a, b string) int {
			return cmp.Or(s.Replicas[a].At.Compare(s.Replicas[b].At), strings.Compare(a, b))
		})
		delete(s.Replicas, oldest)
	}
	s.Replicas[e.Source] = now
}

// Trained returns the last step that every model was trained on.
func (s *State) Trained() int {
	last := map[events.Role]int{}
	for role := range s.Policies {
		last[role] = s.Policies[role].Step
	}
	return s.Models.Trained(last)
}

// Total returns the number of events.
func (s *State) Total() int64 {
	var n int64
	for _, count := range s.Events {
		n += count
	}
	return n
}

// PerSecond returns the events per second over the last seconds with an event.
func (s *State) PerSecond() float64 { return s.rate.perSecond() }
