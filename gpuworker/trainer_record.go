package gpuworker

import (
	"fmt"
	"time"

	"codea1/events"
)

// trainerRecord is trainer.json: everything beside weights and optimizer state
// that a trainer goes on from, and the policy.updated event it published.
type trainerRecord struct {
	Format         int           `json:"format"`
	Run            string        `json:"run"`
	Role           events.Role   `json:"role"`
	Version        int           `json:"version"`
	Step           int           `json:"step"`
	OptimizerSteps int           `json:"optimizer_steps"`
	Position       string        `json:"position"` // on the bus; every event of a later step comes after it
	Groups         []string      `json:"groups"`   // consumed, in canonical order
	Dropped        []string      `json:"dropped"`  // of the step, and not consumed
	Metrics        metricsRecord `json:"metrics"`
	WeightsSHA256  string        `json:"weights_sha256"`
	Source         string        `json:"source"`
	Time           time.Time     `json:"time"`
}

// metricsRecord is events.PolicyMetrics with the names of trainer.json; the
// compiler holds the two to the same fields.
type metricsRecord struct {
	Loss         float64 `json:"loss"`
	KL           float64 `json:"kl"`
	ClipFraction float64 `json:"clip_fraction"`
	RatioMean    float64 `json:"ratio_mean"`
	Entropy      float64 `json:"entropy"`
	GradNorm     float64 `json:"grad_norm"`
	LearningRate float64 `json:"learning_rate"`
	RewardMean   float64 `json:"reward_mean"`
	Sequences    int     `json:"sequences"`
	Tokens       int     `json:"tokens"`
	Optimizer    int     `json:"optimizer_step"`
	Seconds      float64 `json:"seconds"`
}

// updated returns the policy.updated event of the checkpoint in dir. Made
// twice from the same checkpoint, it is the same event.
func (r *trainerRecord) updated(dir string) (*events.Event, error) {
	uri, err := CheckpointURI(dir)
	if err != nil {
		return nil, err
	}
	group := fmt.Sprintf("%s-%s", r.Role, versionName(r.Version))
	return events.New(r.Run, group, r.Source, r.Time, &events.PolicyUpdated{
		Role: r.Role, Version: r.Version, Step: r.Step, Groups: r.Groups, Dropped: r.Dropped,
		Metrics:    events.PolicyMetrics(r.Metrics),
		Checkpoint: events.Checkpoint{URI: uri, SHA256: r.WeightsSHA256},
	}), nil
}
