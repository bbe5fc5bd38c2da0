package stage

import (
	"sync"
	"time"

	"codea1/events"

	"github.com/prometheus/client_golang/prometheus"
)

// signals is what a scaler looks at: the state of the stages of one registry
// that run now. There is one per registry, so that several stages, and several
// instances of one, can share it.
type signals struct {
	mu    sync.Mutex
	live  map[*Stage]bool
	ended map[string]time.Duration // busy time of instances that have ended, by stage
}

var (
	lagDesc        = signalDesc("lag_events", "Events the bus holds for the stage that no instance has got yet. Every instance reports the same figure: take the maximum, not the sum.")
	unansweredDesc = signalDesc("unanswered_events", "Events that instances of the stage have got and not answered, snoozed and failed ones included. The same figure from every instance.")
	lagAgeDesc     = signalDesc("lag_age_seconds", "Time since the bus last told the lag.")
	slotsDesc      = signalDesc("slots", "Batches that the stage can handle at the same time in this process.")
	busyRatioDesc  = signalDesc("busy_ratio", "Share of the slots' time spent on batches in the last interval of the lag, 0 to 1.")
	busyTotalDesc  = signalDesc("busy_seconds_total", "Time slots have spent on batches, unfinished ones included, added up over slots.")
)

func signalDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, subsystem, name), help, []string{"stage"}, nil)
}

var _ prometheus.Collector = (*signals)(nil)

func newSignals(registerer prometheus.Registerer) (*signals, error) {
	var errs []error
	s := register(registerer, &errs, &signals{live: make(map[*Stage]bool), ended: make(map[string]time.Duration)})
	if len(errs) > 0 {
		return nil, errs[0]
	}
	return s, nil
}

func (g *signals) add(s *Stage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.live[s] = true
}

func (g *signals) remove(s *Stage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.live, s)
	g.ended[s.config.Name] += s.metrics.busy.read(s.config.Now())
}

// Describe implements prometheus.Collector.
func (*signals) Describe(into chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{lagDesc, unansweredDesc, lagAgeDesc, slotsDesc, busyRatioDesc, busyTotalDesc} {
		into <- d
	}
}

// signal is the state of all instances of one stage in this process.
type signal struct {
	slots     int
	busySlots float64 // of the last interval
	busy      time.Duration
	lag       events.Lag
	lagAt     time.Time // newest of the instances; zero for none
}

// Collect implements prometheus.Collector. It asks the bus nothing: a scrape
// costs the same whatever the bus does.
func (g *signals) Collect(into chan<- prometheus.Metric) {
	now := time.Now()
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, stage string) {
		into <- prometheus.MustNewConstMetric(d, kind, value, stage)
	}
	for stage, s := range g.read() {
		send(busyTotalDesc, prometheus.CounterValue, s.busy.Seconds(), stage)
		if s.slots == 0 {
			continue // none runs: there is no state
		}
		send(slotsDesc, prometheus.GaugeValue, float64(s.slots), stage)
		send(busyRatioDesc, prometheus.GaugeValue, s.busySlots/float64(s.slots), stage)
		if !s.lagAt.IsZero() {
			send(lagDesc, prometheus.GaugeValue, float64(s.lag.Pending), stage)
			send(unansweredDesc, prometheus.GaugeValue, float64(s.lag.InFlight), stage)
			send(lagAgeDesc, prometheus.GaugeValue, now.Sub(s.lagAt).Seconds(), stage)
		}
	}
}

func (g *signals) read() map[string]signal {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make(map[string]signal)
	for stage, busy := range g.ended {
		all[stage] = signal{busy: busy}
	}
	for s := range g.live {
		one := all[s.config.Name]
		one.slots += s.config.Concurrency
		one.busy += s.metrics.busy.read(s.config.Now())
		s.contact.mu.Lock()
		one.busySlots += s.contact.busy * float64(s.config.Concurrency)
		if s.contact.lagAt.After(one.lagAt) {
			one.lag, one.lagAt = s.contact.lag, s.contact.lagAt
		}
		s.contact.mu.Unlock()
		all[s.config.Name] = one
	}
	return all
}
