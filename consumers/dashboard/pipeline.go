package dashboard

import (
	"fmt"
	"time"

	"codea1/events"
)

// stepSpans measures which stage a step waited for.
type stepSpans struct {
	made map[int]map[string]time.Time // by step and stage: when the newest event was made
	last Binding
}

// Binding says how long the last trained step waited for each stage.
type Binding struct {
	Step    int    `json:"step"`
	Seconds number `json:"seconds"`
	Text    string `json:"text"` // which stage it waited for the longest
	Now     string `json:"now"`  // which stage is the busiest; empty at the end of the attempt
	Spans   []Span `json:"spans"`
}

// Span is the time in which a stage was the last that a step waited for.
type Span struct {
	Stage   string `json:"stage"`
	Seconds number `json:"seconds"`
	Share   number `json:"share"`
}

// note records when a stage made an event of a training step.
func (x *stepSpans) note(e *events.Event, models events.Models) {
	plan, ok := events.PlanOf(e.Payload)
	step := plan.Step
	if p, isUpdate := e.Payload.(*events.PolicyUpdated); isUpdate {
		ok, step = true, p.Step
	} else if plan.Purpose != events.PurposeTrain {
		return
	}
	if !ok || x.made[step] == nil && len(x.made) >= maxOpenSteps {
		return
	}
	name := makerOf(e, models)
	if name == "" {
		return
	}
	if x.made[step] == nil {
		x.made[step] = map[string]time.Time{}
	}
	if e.Time.After(x.made[step][name]) {
		x.made[step][name] = e.Time
	}
}

// makerOf returns the stage that makes an event.
func makerOf(e *events.Event, models events.Models) string {
	if p, ok := e.Payload.(*events.PolicyUpdated); ok {
		return events.TrainerStage(p.Role).Name
	}
	for _, s := range models.Stages() {
		for _, t := range s.Makes {
			if t == e.Type {
				return s.Name
			}
		}
	}
	return ""
}

// trained computes the spans of a step that began at a time. Each stage has the
// time from the last event of the stage before it to its own last event, so the
// spans add up to the step.
func (x *stepSpans) trained(step int, began time.Time, models events.Models) {
	made := x.made[step]
	for old := range x.made {
		if old <= step {
			delete(x.made, old)
		}
	}
	if made == nil {
		return
	}
	b := Binding{Step: step}
	at := began
	for _, s := range models.Stages() {
		if end, ok := made[s.Name]; ok && end.After(at) {
			if s.Kind == events.Projection && s.Role == events.RoleCode && made[events.TrainerStage(events.RoleTest).Name].After(end) {
				continue // both trainers work at the same time: the later one counts
			}
			b.Spans = append(b.Spans, Span{Stage: s.Name, Seconds: number(end.Sub(at).Seconds())})
			at = end
		}
	}
	b.Seconds = number(at.Sub(began).Seconds())
	if b.Seconds <= 0 {
		return
	}
	longest := Span{}
	for i := range b.Spans {
		b.Spans[i].Share = b.Spans[i].Seconds / b.Seconds
		if b.Spans[i].Share > longest.Share {
			longest = b.Spans[i]
		}
	}
	b.Text = fmt.Sprintf("%s: %.0f%% of step %d, %.1f s of %.1f s", longest.Stage, 100*float64(longest.Share), step,
		float64(longest.Seconds), float64(b.Seconds))
	x.last = b
}

// busiest says which stage is the busiest by the newest heartbeats. It is empty if
// none is busy.
func busiest(views []stageView) string {
	var most *stageView
	for i := range views {
		if v := &views[i]; v.Busy > 0 && (most == nil || v.Busy > most.Busy) {
			most = v
		}
	}
	if most == nil {
		return ""
	}
	return fmt.Sprintf("%s is the busiest stage now: %.0f%%, %d in flight, %d wait", most.Stage, 100*float64(most.Busy), most.InFlight, most.Lag)
}

// fill adds the curriculum and the policy versions to the views. Heartbeats have neither.
func (s *State) fill(views []stageView) {
	seconds := float64(s.spans.last.Seconds)
	for i := range views {
		v := &views[i]
		stage, _ := s.Models.Stage(v.Stage)
		v.Role = stage.Role
		if policy, ok := s.Policies[s.Models.Policy(stage.Role)]; ok && stage.Role != "" {
			version := policy.Version
			if stage.Kind == events.Worker {
				version = s.sampled[stage.Role]
				behind := max(0, policy.Version-version)
				v.Staleness = &behind
			} else {
				v.Handled = max(v.Handled, int64(policy.Step)*int64(s.groupsPerStep))
				if seconds > 0 { // a step takes longer than the time between two heartbeats
					v.PerSecond = number(float64(s.groupsPerStep) / seconds)
				}
				if v.Replicas == 0 { // no heartbeat yet
					v.Replicas = 1
					if seconds > 0 {
						v.Busy = number(min(1, policy.Metrics.Seconds/seconds))
					}
				}
			}
			v.Version = &version
		}
		if stage.Role != "" && stage.Kind == events.Projection {
			v.Lag = -int64(v.InFlight) // a trainer reads nothing while it trains, so it does not know
			for _, groups := range s.endedGroups {
				v.Lag += int64(groups)
			}
			v.Lag = max(0, v.Lag)
		}
		switch v.Stage {
		case events.StageRecorder:
			v.Replicas, v.Handled, v.PerSecond, v.Failed = min(1, s.Attempt), s.Total(), number(s.PerSecond()), max(v.Failed, s.Quarantined)
		case events.StageCurriculum:
			v.Replicas, v.Handled = min(1, s.Attempt), s.Events[events.TypeProblemPosed]
			if seconds > 0 {
				v.PerSecond = number(float64(s.groupsPerStep) / seconds)
			}
		}
		v.Dropped = s.dropsBy[v.Stage]
	}
}
