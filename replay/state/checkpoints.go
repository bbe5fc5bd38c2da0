package state

import "codea1/events"

// Checkpoints is the index of a run's policy versions, in the order of the log.
type Checkpoints []Checkpoint

// Checkpoint describes one policy version and the location of its weights.
type Checkpoint struct {
	Role    events.Role `json:"role"`
	Version int         `json:"version"` // 0 is the version that the run started with
	Step    int         `json:"step"`    // the step that the version was trained on; 0 for version 0
	URI     string      `json:"uri"`
	SHA256  string      `json:"sha256"` // of model.safetensors, hex
	Groups  int         `json:"groups"` // number of groups trained on
	LeftOut int         `json:"left_out"`
	Seq     uint64      `json:"seq"` // the event that names the version
}

// Newest returns the newest version of a role, or nil.
func (c Checkpoints) Newest(role events.Role) *Checkpoint {
	var newest *Checkpoint
	for i := range c {
		if c[i].Role == role && (newest == nil || c[i].Version >= newest.Version) {
			newest = &c[i]
		}
	}
	return newest
}

func (c *Checkpoints) apply(e *Event) {
	switch p := e.Payload.(type) {
	case *events.RunStarted:
		if len(*c) == 0 { // a resumed run has the same version 0
			for _, role := range p.Models.Roles() {
				start := p.Start(role)
				*c = append(*c, Checkpoint{Role: role, URI: start.URI, SHA256: start.SHA256, Seq: e.Seq})
			}
		}
	case *events.PolicyUpdated:
		*c = append(*c, Checkpoint{
			Role: p.Role, Version: p.Version, Step: p.Step, URI: p.Checkpoint.URI, SHA256: p.Checkpoint.SHA256,
			Groups: len(p.Groups), LeftOut: len(p.Dropped), Seq: e.Seq,
		})
	}
}
