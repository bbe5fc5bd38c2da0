package events

import (
	"slices"
)

// Models says which models a run has, and so which stages.
type Models string

// The models of a run.
const (
	ModelsBoth   Models = ""       // a Code LLM and a Test LLM
	ModelsCode   Models = "code"   // a Code LLM, trained without a Test LLM: there are no suites
	ModelsShared Models = "shared" // one model that samples in both roles; its versions are those of role code
)

// Validate accepts the constants above.
func (m Models) Validate() error {
	if m != ModelsBoth && m != ModelsCode && m != ModelsShared {
		return invalid("models", "%q is neither empty nor %q nor %q", clip(string(m)), ModelsCode, ModelsShared)
	}
	return nil
}

// Roles returns the roles that have a model of their own. Its versions are
// trained.
func (m Models) Roles() []Role {
	if m == ModelsBoth {
		return []Role{RoleCode, RoleTest}
	}
	return []Role{RoleCode}
}

// Policy returns the role of the model that samples in a role.
func (m Models) Policy(role Role) Role {
	if m == ModelsShared {
		return RoleCode
	}
	return role
}

// Trained returns the last step that every model was trained on, from the last
// step or version of each role.
func (m Models) Trained(last map[Role]int) int {
	trained := last[RoleCode]
	for _, role := range m.Roles() {
		trained = min(trained, last[role])
	}
	return trained
}

// Stages returns the stages of a run with these models, in the order of Stages.
func (m Models) Stages() []Stage {
	if m == ModelsBoth {
		return Stages
	}
	var stages []Stage
	for _, s := range Stages {
		switch {
		case s.Role == RoleTest && (m == ModelsCode || s.Kind == Projection):
			continue
		case m == ModelsCode && s.Name == StageExecution: // takes the place of the stage that samples suites
			s.Consumes = RolloutStage(RoleTest).Consumes
		case m == ModelsShared && s.Name == StageTrainerCode:
			s.Consumes = append(slices.Clone(s.Consumes), TypeTestsSampled)
		}
		stages = append(stages, s)
	}
	return stages
}

// Stage returns the stage of a name; false if a run with these models has none.
func (m Models) Stage(name string) (Stage, bool) {
	stages := m.Stages()
	i := slices.IndexFunc(stages, func(s Stage) bool { return s.Name == name })
	if i < 0 {
		return Stage{}, false
	}
	return stages[i], true
}

// Workers returns the stages with replicas that consume events as a worker set.
func (m Models) Workers() []Stage {
	return slices.DeleteFunc(slices.Clone(m.Stages()), func(s Stage) bool { return s.Kind != Worker })
}

// Causes returns, for each type that follows from another event, the type of
// its cause. The other types have no cause, except TypeGroupDropped: it may
// follow from an event of any type.
func (m Models) Causes() map[Type]Type {
	causes := make(map[Type]Type)
	for _, s := range m.Workers() {
		for _, t := range s.Makes {
			causes[t] = s.Consumes[0]
		}
	}
	return causes
}
