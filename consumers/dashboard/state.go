package dashboard

import (
	"slices"
	"time"

	"codea1/events"
)

// Bounds of what a State keeps.
const (
	maxRecentDrops = 20
	maxInstances   = 256  // stage instances with a heartbeat
	maxOpenSteps   = 4096 // steps under way at a time
)

// State is what the user is shown of a run: a pure projection over its events
// in the order of the bus. It reads no clock; every time in it comes from an
// event. It is not safe for concurrent use: Follower is.
type State struct {
	Run        string
	Attempt    int           // the latest, from 1; 0 before run.started
	Started    time.Time     // when the latest attempt started
	Last       time.Time     // the newest event
	Finished   string        // why the latest attempt ended; empty while it goes on
	Steps      int           // steps planned
	Budget     time.Duration // how long the latest attempt may take; 0 for as long as the steps do
	ProblemSet string
	Problems   int    // training problems in the set
	Build      string // of the program that runs the latest attempt
	Config     string // its whole configuration, YAML

	Events     map[events.Type]int64 // by type
	Unreadable int64                 // events whose payload could not be decoded

	Rewarded    int64 // training groups
	Dropped     int64 // groups of either purpose
	Drops       map[events.DropReason]int64
	RecentDrops []Drop // oldest first

	Policies map[events.Role]Policy
	Stages   map[string]Stage // by instance
	History  History          // means per training step
	Book     Book

	evals    evals
	examples examples
	twoRoles bool        // the Test LLM trains too: groups have suites
	open     map[int]int // groups ended per step that is not trained yet
	perStep  int         // groups in a step, as planned last
	pace     pace
	rate     rate
}

// Drop is a group that left the pipeline.
type Drop struct {
	At     time.Time
	Group  string
	Stage  string
	Reason events.DropReason
	Detail string
}

// Policy is the newest version of a role's weights.
type Policy struct {
	Version int
	Step    int // training step that made it
	At      time.Time
	Metrics events.PolicyMetrics
}

// Stage is the last heartbeat of a stage instance.
type Stage struct {
	Name      string
	At        time.Time
	Handled   int64
	Failed    int64
	InFlight  int
	Pending   int64   // consumer lag, events
	Busy      float64 // share of the last interval, 0 to 1 per slot
	PerSecond float64 // events handled per second since the heartbeat before
	beat      int
}

// NewState returns the state before the first event.
func NewState() *State {
	return &State{
		Events: map[events.Type]int64{}, Drops: map[events.DropReason]int64{},
		Policies: map[events.Role]Policy{}, Stages: map[string]Stage{},
		History: newHistory(), Book: newBook(), open: map[int]int{},
		examples: newExamples(),
	}
}

// Needs reports whether State reads the payload of a type. Events of the other
// types, which are the large ones, are counted by their envelope.
func Needs(t events.Type) bool {
	switch t {
	case events.TypeProblemPosed, events.TypeCodeSampled, events.TypeTestsSampled, events.TypeCodeExecuted:
		return false
	}
	return true
}

// Hold keeps an event that was applied without its payload, in case its group
// turns out to be an example. The message must not be changed afterwards.
func (s *State) Hold(m *events.Message) { s.examples.hold(m) }

// Examples returns answers that a new test broke, of all parts of the run, by
// step.
func (s *State) Examples() []Example { return s.examples.all() }

// Apply folds in the next event. An event without payload is only counted.
func (s *State) Apply(e *events.Event) {
	s.Run = e.Run
	s.Events[e.Type]++
	if e.Time.After(s.Last) {
		s.Last = e.Time
	}
	s.rate.add(e.Time)
	switch p := e.Payload.(type) {
	case *events.RunStarted:
		s.start(e, p)
	case *events.RunFinished:
		s.Finished = p.Reason
		if n := len(s.evals); n > 0 && s.evals[n-1].Step == s.Trained() {
			s.evals[n-1].closing = s.Trained() > 0
		}
	case *events.GroupRewarded:
		s.reward(e.Group, p)
	case *events.GroupDropped:
		s.drop(e, p)
	case *events.PolicyUpdated:
		s.update(e, p)
	case *events.EvalScored:
		s.evaluated(e, s.evals.score(p))
	case *events.StageHeartbeat:
		s.beat(e, p)
	}
}

func (s *State) start(e *events.Event, p *events.RunStarted) {
	s.Attempt, s.Started, s.Finished = p.Attempt, e.Time, ""
	s.Steps, s.ProblemSet, s.Problems = p.Steps, p.ProblemSet, p.Problems
	s.Build, s.Config = p.Build, p.Config
	s.examples.plan(p.Steps)
	s.pace.restart(e.Time) // the time a run lay still is not the pace of a step
}

func (s *State) reward(group string, p *events.GroupRewarded) {
	if p.Plan.Purpose != events.PurposeTrain {
		return
	}
	s.Rewarded++
	s.perStep = p.Plan.Groups
	s.twoRoles = s.twoRoles || p.Plan.Suites > 0
	s.ended(p.Plan.Step)
	s.examples.rewarded(group, p)
	entered, left := s.Book.apply(p.ProblemID, p.Deltas)
	s.History.reward(p, entered, left, s.Book.Size())
}

func (s *State) drop(e *events.Event, p *events.GroupDropped) {
	s.Dropped++
	s.Drops[p.Reason]++
	s.RecentDrops = append(s.RecentDrops, Drop{At: e.Time, Group: e.Group, Stage: p.Stage, Reason: p.Reason, Detail: p.Detail})
	if len(s.RecentDrops) > maxRecentDrops {
		s.RecentDrops = slices.Delete(s.RecentDrops, 0, 1)
	}
	switch p.Purpose {
	case events.PurposeTrain:
		s.perStep = max(s.perStep, p.Groups)
		s.ended(p.Step)
		s.examples.release(e.Group)
		s.History.drop(p.Step)
	case events.PurposeEval:
		s.evaluated(e, s.evals.drop(e.Group, p))
	}
}

// ended notes that a training group left the pipeline, at its end or before.
func (s *State) ended(step int) {
	if step > s.Trained() && (s.open[step] > 0 || len(s.open) < maxOpenSteps) {
		s.open[step]++
	}
}

func (s *State) update(e *events.Event, p *events.PolicyUpdated) {
	before := s.Trained()
	s.History.update(p)
	s.Policies[p.Role] = Policy{Version: p.Version, Step: p.Step, At: e.Time, Metrics: p.Metrics}
	trained := s.Trained()
	if trained <= before {
		return
	}
	for step := range s.open {
		if step <= trained {
			delete(s.open, step)
		}
	}
	s.pace.trained(e.Time, trained-before)
}

// evaluated notes that a group of an evaluation ended. One that an earlier
// attempt began took longer than this attempt can tell.
func (s *State) evaluated(e *events.Event, eval *Eval) {
	if eval == nil {
		return
	}
	if eval.done() == 1 {
		eval.attempt = s.Attempt
	}
	if !eval.Complete() {
		return
	}
	if eval.attempt == s.Attempt {
		eval.took = max(0, e.Time.Sub(s.pace.mark))
	}
	s.pace.mark = e.Time
}

func (s *State) beat(e *events.Event, p *events.StageHeartbeat) {
	now := Stage{
		Name: p.Stage, At: e.Time, Handled: p.Handled, Failed: p.Failed,
		InFlight: p.InFlight, Pending: p.Pending, Busy: p.Busy, beat: p.Beat,
	}
	before, known := s.Stages[e.Source]
	// A beat that does not count on is another process under the same name.
	if seconds := e.Time.Sub(before.At).Seconds(); known && p.Beat > before.beat && seconds > 0 {
		now.PerSecond = float64(p.Handled-before.Handled) / seconds
	}
	if !known && len(s.Stages) >= maxInstances {
		s.forgetStage()
	}
	s.Stages[e.Source] = now
}

func (s *State) forgetStage() {
	oldest := ""
	for source, stage := range s.Stages {
		if oldest == "" || stage.At.Before(s.Stages[oldest].At) || stage.At.Equal(s.Stages[oldest].At) && source < oldest {
			oldest = source
		}
	}
	delete(s.Stages, oldest)
}

// Trained returns the last step that every role has trained on. Without
// suites, as with golden tests, only the Code LLM trains.
func (s *State) Trained() int {
	code := s.Policies[events.RoleCode].Step
	if !s.twoRoles {
		return code
	}
	return min(code, s.Policies[events.RoleTest].Step)
}

// Total returns the number of events seen.
func (s *State) Total() int64 {
	var n int64
	for _, count := range s.Events {
		n += count
	}
	return n
}

// PerSecond returns the events per second of the last seconds in which there
// were any.
func (s *State) PerSecond() float64 { return s.rate.perSecond() }
