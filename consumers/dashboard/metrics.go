package dashboard

import (
	"math"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// evalCollector collects the figures of the evaluations of the follower's run.
type evalCollector struct{ follower *Follower }

var _ prometheus.Collector = evalCollector{}

// evalDescs are the descriptions of evalFigures.
var evalDescs = func() (all []*prometheus.Desc) {
	for _, f := range evalFigures {
		all = append(all, prometheus.NewDesc("codea1_evaluation_"+f.name, f.help, []string{"run", "tag", "step"}, nil))
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
			for i, f := range evalFigures {
				if v := f.of(e); !math.IsNaN(v) {
					all = append(all, prometheus.MustNewConstMetric(evalDescs[i], prometheus.GaugeValue, v, s.Run, e.Tag, strconv.Itoa(e.Step)))
				}
			}
		}
	})
	for _, m := range all {
		into <- m
	}
}
