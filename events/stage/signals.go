package stage

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"codea1/events"
)

// signals collects the gauges for an autoscaler: the state of the running
// stages of one registry. Several stages, and several replicas of one, share
// it.
type signals struct {
	mu    sync.Mutex
	live  map[*Stage]bool
	ended map[string]time.Duration // busy time of ended replicas, by stage
}

var (
	lagDesc        = signalDesc("lag_events", "Events of the stage that are not delivered yet. Every replica reports the same value: take the maximum, not the sum.")
	unansweredDesc = signalDesc("unanswered_events", "Events of the stage that are delivered and not answered, including snoozed and failed ones. Every replica reports the same value.")
	lagAgeDesc     = signalDesc("lag_age_seconds", "Time since the bus last returned the lag.")
	slotsDesc      = signalDesc("slots", "Batches that the stage can handle at the same time in this process.")
	busyRatioDesc  = signalDesc("busy_ratio", "Share of busy slots in the last lag interval, 0 to 1.")
	busyTotalDesc  = signalDesc("busy_seconds_total", "Busy time of all slots, including unfinished batches.")
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

// signal is the state of all replicas of one stage in this process.
type signal struct {
	slots     int
	busySlots float64 // of the last interval
	busy      time.Duration
	lag       events.Lag
	lagAt     time.Time // latest of the replicas; zero for none
}

// Collect implements prometheus.Collector. It sends no request to the bus.
func (g *signals) Collect(into chan<- prometheus.Metric) {
	now := time.Now()
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, stage string) {
		into <- prometheus.MustNewConstMetric(d, kind, value, stage)
	}
	for stage, s := range g.read() {
		send(busyTotalDesc, prometheus.CounterValue, s.busy.Seconds(), stage)
		if s.slots == 0 {
			continue // no replica runs
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
