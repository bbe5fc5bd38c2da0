package events

import (
	"math"
	"net/url"
	"path"
)

// Checkpoint names saved weights.
type Checkpoint struct {
	URI    string `msgpack:"uri"`    // location, for example file:///runs/r1/checkpoints/code/v000012
	SHA256 string `msgpack:"sha256"` // of model.safetensors, hex; of weights in shards, of their lines in SHA256SUMS

	FilesSHA256 string `msgpack:"files_sha256,omitempty"` // of the lines in SHA256SUMS of all files except trainer.json, hex; left out: by an earlier build, or the model has no files
}

// Dir returns the directory that the URI names: a path on this machine.
func (c *Checkpoint) Dir() (string, error) {
	u, err := url.Parse(c.URI)
	if err != nil {
		return "", invalid("checkpoint.uri", "%v", err)
	}
	if u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || u.RawQuery != "" || u.Fragment != "" || u.User != nil ||
		!path.IsAbs(u.Path) || path.Clean(u.Path) != u.Path {
		return "", invalid("checkpoint.uri", "%q: want file:// and a clean absolute path of this machine", clip(c.URI))
	}
	return u.Path, nil
}

func (c *Checkpoint) validate(field string) error {
	if c.URI == "" {
		return invalid(field+".uri", "is empty")
	}
	if !isHex(c.SHA256, 64) {
		return invalid(field+".sha256", "want 64 hex digits, have %q", clip(c.SHA256))
	}
	if c.FilesSHA256 != "" && !isHex(c.FilesSHA256, 64) {
		return invalid(field+".files_sha256", "want 64 hex digits, have %q", clip(c.FilesSHA256))
	}
	return nil
}

// RunStarted begins an attempt at a run, with the configuration and the build.
type RunStarted struct {
	Attempt    int        `msgpack:"attempt"` // 1 for a new run, one more for each resume
	Steps      int        `msgpack:"steps"`   // steps planned
	Build      string     `msgpack:"build"`   // version of this program and of Go
	Config     string     `msgpack:"config"`  // the whole configuration, YAML
	ProblemSet string     `msgpack:"problem_set"`
	Problems   int        `msgpack:"problems"`         // training problems in the set
	Code       Checkpoint `msgpack:"code"`             // version 0 of the Code LLM
	Test       Checkpoint `msgpack:"test"`             // version 0 of the Test LLM; empty without a model of its own
	Origin     *Origin    `msgpack:"origin,omitempty"` // the run whose first events this one shares; only in the event after those
	Models     Models     `msgpack:"models,omitempty"` // "code": a Code LLM only; "shared": one model in both roles; "judged", "judged-both" and so on: answers are judged; left out: a Code LLM and a Test LLM

	ProblemsSHA256 string `msgpack:"problems_sha256,omitempty"` // of the content of the problem set, hex; left out: not measured
	HeldoutSHA256  string `msgpack:"heldout_sha256,omitempty"`  // of the content of the held-out problems, hex; left out: none, or not measured
}

// Origin names the first events of a run that a fork shares. In the fork, their
// run and the IDs that derive from it are replaced.
type Origin struct {
	Run    string `msgpack:"run"`
	Events uint64 `msgpack:"events"` // number of shared events, from the first of its log
	Chain  string `msgpack:"chain"`  // chain hash of the last of them in its log, hex
}

func (o *Origin) validate() error {
	if err := checkToken("origin.run", o.Run); err != nil {
		return err
	}
	if o.Events < 1 {
		return invalid("origin.events", "want 1 or more, have %d", o.Events)
	}
	if !isHex(o.Chain, 64) {
		return invalid("origin.chain", "want 64 hex digits, have %q", clip(o.Chain))
	}
	return nil
}

// EventType implements Payload.
func (*RunStarted) EventType() Type { return TypeRunStarted }

// Validate implements Payload.
func (r *RunStarted) Validate() error {
	if r.Attempt < 1 {
		return invalid("attempt", "want 1 or more, have %d", r.Attempt)
	}
	if err := r.Models.Validate(); err != nil {
		return err
	}
	for _, role := range r.Models.Roles() {
		if err := r.Start(role).validate(string(role)); err != nil {
			return err
		}
	}
	if r.Origin != nil {
		if err := r.Origin.validate(); err != nil {
			return err
		}
	}
	for field, sum := range map[string]string{"problems_sha256": r.ProblemsSHA256, "heldout_sha256": r.HeldoutSHA256} {
		if sum != "" && !isHex(sum, 64) {
			return invalid(field, "want 64 hex digits, have %q", clip(sum))
		}
	}
	return checkText("config", r.Config)
}

// RunFinished ends an attempt at a run.
type RunFinished struct {
	Attempt int    `msgpack:"attempt"`
	Steps   int    `msgpack:"steps"`  // steps that every model was trained on
	Reason  string `msgpack:"reason"` // "completed" or "stopped"
}

// The reasons for the end of an attempt.
const (
	RunCompleted = "completed" // every planned step was trained
	RunStopped   = "stopped"   // stopped by the user, a signal or the time budget; it can be resumed
)

// EventType implements Payload.
func (*RunFinished) EventType() Type { return TypeRunFinished }

// Validate implements Payload.
func (r *RunFinished) Validate() error {
	if r.Attempt < 1 {
		return invalid("attempt", "want 1 or more, have %d", r.Attempt)
	}
	if r.Reason != RunCompleted && r.Reason != RunStopped {
		return invalid("reason", "%q is neither %q nor %q", clip(r.Reason), RunCompleted, RunStopped)
	}
	return nil
}

// PolicyMetrics describes the update that made a policy version. The values are
// means over its optimizer steps, weighted by response tokens.
type PolicyMetrics struct {
	Loss         float64 `msgpack:"loss"`
	KL           float64 `msgpack:"kl"`
	ClipFraction float64 `msgpack:"clip_fraction"`
	RatioMean    float64 `msgpack:"ratio_mean"`
	Entropy      float64 `msgpack:"entropy"`
	GradNorm     float64 `msgpack:"grad_norm"`
	LearningRate float64 `msgpack:"lr"` // of the last optimizer step
	RewardMean   float64 `msgpack:"reward_mean"`
	Sequences    int     `msgpack:"sequences"`
	Tokens       int     `msgpack:"tokens"`
	Optimizer    int     `msgpack:"optimizer_step"` // optimizer steps taken since version 0
	Seconds      float64 `msgpack:"seconds"`        // wall time of the update

	Mismatch *Mismatch `msgpack:"mismatch,omitempty"` // measured if the trainer computed the old log-probs again
}

// Mismatch compares the log-probs that were recorded when the responses of a step
// were sampled with those of the trainer's weights before the update. The values
// are over all response tokens.
type Mismatch struct {
	MeanAbs   float64 `msgpack:"mean_abs" json:"mean_abs"`   // mean absolute difference in nats
	Max       float64 `msgpack:"max" json:"max"`             // largest absolute difference in nats
	KL        float64 `msgpack:"kl" json:"kl"`               // k3 estimate of the KL divergence of the sampler from the trainer
	Truncated float64 `msgpack:"truncated" json:"truncated"` // share of tokens with a truncated importance weight
}

// PolicyUpdated announces a new policy version of a role.
type PolicyUpdated struct {
	Role       Role          `msgpack:"role"`
	Version    int           `msgpack:"version"`          // from 1; version 0 is the checkpoint at the start of the run
	Step       int           `msgpack:"step"`             // the training step whose groups it consumed
	Groups     []string      `msgpack:"groups,omitempty"` // groups consumed, in canonical order
	Dropped    []string      `msgpack:"dropped,omitempty"`
	Metrics    PolicyMetrics `msgpack:"metrics"`
	Checkpoint Checkpoint    `msgpack:"checkpoint"`
}

// EventType implements Payload.
func (*PolicyUpdated) EventType() Type { return TypePolicyUpdated }

// Validate implements Payload.
func (p *PolicyUpdated) Validate() error {
	if err := p.Role.Validate(); err != nil {
		return err
	}
	if p.Version < 1 {
		return invalid("version", "want 1 or more, have %d", p.Version)
	}
	if p.Step < 1 {
		return invalid("step", "want 1 or more, have %d", p.Step)
	}
	if err := checkCount("groups", len(p.Groups), MaxItems); err != nil {
		return err
	}
	return p.Checkpoint.validate("checkpoint")
}

// EvalScored holds the scores of one problem of an evaluation.
type EvalScored struct {
	Plan      Plan   `msgpack:"plan"`
	ProblemID string `msgpack:"problem"`
	// Code LLM: an answer is correct when it passes every golden test.
	CodeVersion int    `msgpack:"code_version"`
	Correct     []bool `msgpack:"correct,omitempty"` // one per answer that was sampled and not masked
	// Test LLM: the suites that it wrote for the group's answers.
	TestVersion int `msgpack:"test_version"`
	Suites      int `msgpack:"suites"`    // suites scored
	Wanted      int `msgpack:"wanted"`    // tests wanted: suites x K
	Stated      int `msgpack:"stated"`    // tests written
	Right       int `msgpack:"right"`     // of those, kept and right as stated
	Defective   int `msgpack:"defective"` // suites written for an answer that fails a golden test
	Found       int `msgpack:"found"`     // of those, with a test that is right as stated and that the answer fails
	// Inputs counts the inputs of the kept tests; nil if nobody counted them.
	Inputs *InputCounts `msgpack:"inputs,omitempty"`
}

// InputCounts counts the inputs of the kept tests of an evaluation's suites. A
// test that is wrong as stated counts too: its input can still expose a defect.
type InputCounts struct {
	Kept    int `msgpack:"kept"`    // kept tests
	Trivial int `msgpack:"trivial"` // of those, with an empty or one-element input
	Reached int `msgpack:"reached"` // defective suites with a kept test that the answer fails
}

// EventType implements Payload.
func (*EvalScored) EventType() Type { return TypeEvalScored }

// Validate implements Payload.
func (e *EvalScored) Validate() error {
	if err := e.Plan.Validate(); err != nil {
		return err
	}
	if e.ProblemID == "" {
		return invalid("problem", "is empty")
	}
	if e.Right > e.Stated || e.Found > e.Defective || e.Defective > e.Suites {
		return invalid("right", "%d of %d tests, or %d of %d defects of %d suites: a part is larger than its whole",
			e.Right, e.Stated, e.Found, e.Defective, e.Suites)
	}
	if in := e.Inputs; in != nil && (in.Trivial < 0 || in.Trivial > in.Kept || in.Kept > e.Stated || in.Reached < e.Found || in.Reached > e.Defective) {
		return invalid("inputs", "%d trivial of %d kept of %d tests, or %d defects reached with %d found of %d: a part is larger than its whole",
			in.Trivial, in.Kept, e.Stated, in.Reached, e.Found, e.Defective)
	}
	return nil
}

// StageHeartbeat reports that a replica of a stage is alive, with its counters.
type StageHeartbeat struct {
	Stage    string  `msgpack:"stage"`
	Beat     int     `msgpack:"beat"`      // counts from 1 within a process
	Handled  int64   `msgpack:"handled"`   // events handled since the process started
	Failed   int64   `msgpack:"failed"`    // tries that failed
	InFlight int     `msgpack:"in_flight"` // events being handled now
	Pending  int64   `msgpack:"pending"`   // events not delivered yet to the worker set
	Busy     float64 `msgpack:"busy"`      // share of the last interval spent handling, 0 to 1 per slot
}

// EventType implements Payload.
func (*StageHeartbeat) EventType() Type { return TypeStageHeartbeat }

// Validate implements Payload.
func (s *StageHeartbeat) Validate() error {
	if s.Stage == "" {
		return invalid("stage", "is empty")
	}
	if math.IsNaN(s.Busy) || s.Busy < 0 {
		return invalid("busy", "%v is negative", s.Busy)
	}
	return nil
}
