package problems

// Flags are the settings of the problem sets of a run.
type Flags struct {
	Problems string       `yaml:"problems" help:"Training problems: builtin:train, builtin:hard, or a .jsonl, .jsonl.gz or .parquet file." default:"builtin:train" scope:"path"`
	Heldout  string       `yaml:"heldout" help:"Problems of the evaluations, which are never trained on: builtin:heldout, builtin:hard-heldout or a file; empty for no evaluation." default:"builtin:heldout" scope:"path" change:"never"`
	OnBadRow BadRowPolicy `yaml:"on-bad-row" help:"What a malformed row of a problem file does: fail or skip." default:"fail" enum:"fail,skip"`
}
