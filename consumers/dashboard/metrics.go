package dashboard

import (
	"math"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"codea1/events"
)

// evalCollector collects the figures of the evaluations of the follower's run.
type evalCollector struct{ follower *Follower }

var _ prometheus.Collector = evalCollector{}

// evalDescs are the descriptions of EvalFigures.
var evalDescs = func() (all []*prometheus.Desc) {
	for _, f := range EvalFigures {
		all = append(all, prometheus.NewDesc("codea1_evaluation_"+f.Name, f.Help, []string{"run", "tag", "step"}, nil))
	}
	return all
}()

// Describe implements prometheus.Collector.
func (evalCollector) Describe(into chan<- *prometheus.Desc) {
	for _, d := range evalDescs {
		into <- d
	}
}

// Collect implements prometheus.Collector. A figure without a measurement is left
// out.
func (c evalCollector) Collect(into chan<- prometheus.Metric) {
	var all []prometheus.Metric
	c.follower.View(func(s *State) {
		for _, e := range s.evals {
			for i, f := range EvalFigures {
				if v := f.Of(e); !math.IsNaN(v) {
					all = append(all, prometheus.MustNewConstMetric(evalDescs[i], prometheus.GaugeValue, v, s.Run, e.Tag, strconv.Itoa(e.Step)))
				}
			}
		}
	})
	for _, m := range all {
		into <- m
	}
}

// trainingCollector collects the state of the training of the follower's run.
type trainingCollector struct{ follower *Follower }

var _ prometheus.Collector = trainingCollector{}

// trainingFigures are metrics of a run.
var trainingFigures = []struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*State) int64
}{
	{runDesc("training_step", "Last step that every model was trained on."), prometheus.GaugeValue, func(s *State) int64 { return int64(s.Trained()) }},
	{runDesc("training_planned_steps", "Steps planned."), prometheus.GaugeValue, func(s *State) int64 { return int64(s.Steps) }},
	{runDesc("training_running", "1 while an attempt at the run is in progress, 0 after its end."), prometheus.GaugeValue, func(s *State) int64 {
		if s.Finished != "" {
			return 0
		}
		return 1
	}},
	{runDesc("training_attempt", "Latest attempt at the run, as its events count them: a fork counts on from those of its origin."), prometheus.GaugeValue, func(s *State) int64 { return int64(s.Attempt) }},
	{runDesc("groups_rewarded_total", "Training groups rewarded."), prometheus.CounterValue, func(s *State) int64 { return s.Rewarded }},
	{runDesc("quarantined_messages_total", "Messages that are no events of the run."), prometheus.CounterValue, func(s *State) int64 { return s.Quarantined }},
	{runDesc("mistake_book_tests", "Tests in the Mistake Book."), prometheus.GaugeValue, func(s *State) int64 { return int64(s.Book.Size()) }},
	{runDesc("mistake_book_entered_total", "Tests that entered the Mistake Book."), prometheus.CounterValue, func(s *State) int64 { return int64(s.Book.Entered) }},
	{runDesc("mistake_book_left_total", "Tests that left the Mistake Book."), prometheus.CounterValue, func(s *State) int64 { return int64(s.Book.Left) }},
}

// policyDescs are the descriptions of policyFigures.
var policyDescs = func() (all []*prometheus.Desc) {
	for _, f := range policyFigures {
		all = append(all, runDesc("policy_"+f.name, f.help, "role"))
	}
	return all
}()

var stalenessDesc = runDesc("policy_"+stalenessName, stalenessHelp, "role")

var droppedDesc = runDesc("groups_dropped_total", "Groups dropped, by reason; infrastructure counts infrastructure failures.", "reason")

func runDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("codea1_"+name, help, append([]string{"run"}, labels...), nil)
}

// usualDrops are the reasons of this program's stages.
var usualDrops = []events.DropReason{
	events.DropInfrastructure, events.DropTooLarge, events.DropRetries, events.DropMalformed, events.DropStale, events.DropLineage,
}

// Metrics returns the figures of the follower's run.
func Metrics(follower *Follower) prometheus.Gatherer {
	figures := prometheus.NewRegistry()
	figures.MustRegister(evalCollector{follower}, trainingCollector{follower})
	return figures
}

// Describe implements prometheus.Collector.
func (trainingCollector) Describe(into chan<- *prometheus.Desc) {
	for _, f := range trainingFigures {
		into <- f.desc
	}
	for _, d := range policyDescs {
		into <- d
	}
	into <- stalenessDesc
	into <- droppedDesc
}

// Collect implements prometheus.Collector. It collects nothing before the run begins.
func (c trainingCollector) Collect(into chan<- prometheus.Metric) {
	var all []prometheus.Metric
	add := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		if !math.IsNaN(value) {
			all = append(all, prometheus.MustNewConstMetric(desc, kind, value, labels...))
		}
	}
	c.follower.View(func(s *State) {
		if s.Run == "" {
			return
		}
		for _, f := range trainingFigures {
			add(f.desc, f.kind, float64(f.of(s)), s.Run)
		}
		for role, p := range s.Policies {
			for i, f := range policyFigures {
				add(policyDescs[i], prometheus.GaugeValue, f.of(&p), s.Run, string(role))
			}
		}
		for role, v := range s.Staleness {
			add(stalenessDesc, prometheus.GaugeValue, v, s.Run, string(role))
		}
		// increase() sees the first group of a reason only if it was 0 before.
		for _, reason := range usualDrops {
			if s.Drops[reason] == 0 {
				add(droppedDesc, prometheus.CounterValue, 0, s.Run, string(reason))
			}
		}
		for reason, n := range s.Drops {
			add(droppedDesc, prometheus.CounterValue, float64(n), s.Run, strings.ToValidUTF8(string(reason), "?"))
		}
	})
	for _, m := range all {
		into <- m
	}
}
