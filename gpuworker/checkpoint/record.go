package checkpoint

import (
	"fmt"
	"time"

	"codea1/events"
)

// Format is the version of the directory layout and of trainer.json.
const Format = 1

// Record is trainer.json: all state that a trainer needs to continue, beside
// weights and optimizer state, and the policy.updated event of the version.
type Record struct {
	Format         int         `json:"format"`
	Run            string      `json:"run"`
	Role           events.Role `json:"role"`
	Version        int         `json:"version"`
	Step           int         `json:"step"`
	OptimizerSteps int         `json:"optimizer_steps"`
	Position       string      `json:"position"` // on the bus; every event of a later step comes after it
	Groups         []string    `json:"groups"`   // consumed, in canonical order
	Dropped        []string    `json:"dropped"`  // groups of the step that are not consumed
	Metrics        Metrics     `json:"metrics"`
	WeightsSHA256  string      `json:"weights_sha256"`
	FilesSHA256    string      `json:"files_sha256,omitempty"` // left out by earlier builds
	Source         string      `json:"source"`
	Time           time.Time   `json:"time"`
}

// Metrics is events.PolicyMetrics with the names of trainer.json. The
// conversion in Event keeps the fields of both types equal.
type Metrics struct {
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

	Mismatch *events.Mismatch `json:"mismatch,omitempty"`
}

// Event returns the policy.updated event of the checkpoint in dir. The same
// checkpoint always gives the same event.
func (r *Record) Event(dir string) (*events.Event, error) {
	uri, err := URI(dir)
	if err != nil {
		return nil, err
	}
	group := fmt.Sprintf("%s-%s", r.Role, versionName(r.Version))
	return events.New(r.Run, group, r.Source, r.Time, &events.PolicyUpdated{
		Role: r.Role, Version: r.Version, Step: r.Step, Groups: r.Groups, Dropped: r.Dropped,
		Metrics:    events.PolicyMetrics(r.Metrics),
		Checkpoint: events.Checkpoint{URI: uri, SHA256: r.WeightsSHA256, FilesSHA256: r.FilesSHA256},
	}), nil
}
