package events

import (
	"maps"
	"slices"
)

// Models says which models a run has, and so which stages.
type Models string

// The models of a run.
const (
	ModelsBoth   Models = ""       // a Code LLM and a Test LLM
	ModelsCode   Models = "code"   // a Code LLM, trained without a Test LLM: there are no suites
	ModelsShared Models = "shared" // one model that samples in both roles; its versions are those of role code

	ModelsFrozenCode Models = "frozen-code" // both; the Code LLM stays at version 0 and has no trainer
	ModelsFrozenTest Models = "frozen-test" // both; the Test LLM stays at version 0 and has no trainer
)

// The same models in a run with a judge: the answers are judged before anything else
// happens with them.
const (
	ModelsJudged           Models = "judged" // as ModelsCode
	ModelsJudgedBoth       Models = "judged-both"
	ModelsJudgedShared     Models = "judged-shared"
	ModelsJudgedFrozenCode Models = "judged-frozen-code"
	ModelsJudgedFrozenTest Models = "judged-frozen-test"
)

// models are all of them.
var models = slices.Concat(unjudged, slices.Sorted(maps.Keys(judged)))

var unjudged = []Models{ModelsBoth, ModelsCode, ModelsShared, ModelsFrozenCode, ModelsFrozenTest}

// judged are the models of runs with a judge, and those of the same runs without it.
var judged = map[Models]Models{
	ModelsJudged: ModelsCode, ModelsJudgedBoth: ModelsBoth, ModelsJudgedShared: ModelsShared,
	ModelsJudgedFrozenCode: ModelsFrozenCode, ModelsJudgedFrozenTest: ModelsFrozenTest,
}

// Judged reports whether the run has a judge.
func (m Models) Judged() bool {
	_, ok := judged[m]
	return ok
}

// WithJudge returns the same models in a run with a judge.
func (m Models) WithJudge() Models {
	for with, without := range judged {
		if without == m {
			return with
		}
	}
	return m
}

// withoutJudge returns the same models in a run without a judge.
func (m Models) withoutJudge() Models {
	if without, ok := judged[m]; ok {
		return without
	}
	return m
}

// Shared reports whether one model samples in both roles.
func (m Models) Shared() bool { return m.withoutJudge() == ModelsShared }

// Validate accepts the constants above.
func (m Models) Validate() error {
	if !slices.Contains(models, m) {
		return invalid("models", "%q is none of %q", clip(string(m)), models)
	}
	return nil
}

// WithoutTest reports whether there is no Test LLM, so that groups have no suites.
func (m Models) WithoutTest() bool { return m.withoutJudge() == ModelsCode }

// Roles returns the roles that have a model of their own.
func (m Models) Roles() []Role {
	if m.WithoutTest() || m.Shared() {
		return []Role{RoleCode}
	}
	return []Role{RoleCode, RoleTest}
}

// TrainedRoles returns the roles that have a model of their own and train it.
func (m Models) TrainedRoles() []Role { return slices.DeleteFunc(m.Roles(), m.Frozen) }

// Frozen reports whether the model of a role is never trained: all its completions
// are of version 0.
func (m Models) Frozen(role Role) bool {
	m = m.withoutJudge()
	return m == ModelsFrozenCode && role == RoleCode || m == ModelsFrozenTest && role == RoleTest
}

// Version returns the version of a role's model after steps.
func (m Models) Version(role Role, steps int) int {
	if m.Frozen(role) || m.WithoutTest() && role == RoleTest {
		return 0
	}
	return steps
}

// Policy returns the role of the model that samples in a role.
func (m Models) Policy(role Role) Role {
	if m.Shared() {
		return RoleCode
	}
	return role
}

// Trained returns the last step that every model was trained on, from the last
// step or version of each role.
func (m Models) Trained(last map[Role]int) int {
	roles := m.TrainedRoles()
	trained := last[roles[0]]
	for _, role := range roles {
		trained = min(trained, last[role])
	}
	return trained
}

// Stages returns the stages of a run with these models, in the order of Stages. It
// leaves out optional ones.
func (m Models) Stages() []Stage { return stagesOf[m] }

var stagesOf = func() map[Models][]Stage {
	of := make(map[Models][]Stage)
	for _, m := range models {
		of[m] = slices.DeleteFunc(m.possible(), func(s Stage) bool { return s.Optional })
	}
	return of
}()

// possible returns the stages of a run with these models, and the optional ones.
func (m Models) possible() []Stage {
	var stages []Stage
	for _, s := range Stages {
		switch {
		case s.Name == StageJudge && !m.Judged(), s.Role == RoleTest && m.WithoutTest(),
			s.Kind == Projection && s.Role != "" && !slices.Contains(m.TrainedRoles(), s.Role):
			continue
		case m.WithoutTest() && s.Name == StageExecution: // takes the place of the stage that samples suites
			s.Consumes = RolloutStage(RoleTest).Consumes
		case m.Shared() && s.Name == StageTrainerCode:
			s.Consumes = append(slices.Clone(s.Consumes), TypeTestsSampled)
		}
		if m.Judged() && s.Kind == Worker && s.Name != StageJudge && slices.Equal(s.Consumes, []Type{TypeCodeSampled}) {
			s.Consumes = []Type{TypeCodeJudged}
		}
		stages = append(stages, s)
	}
	return stages
}

// Stage returns the stage of a name, which may be optional; false if a run with these
// models has none.
func (m Models) Stage(name string) (Stage, bool) {
	stages := m.possible()
	i := slices.IndexFunc(stages, func(s Stage) bool { return s.Name == name })
	if i < 0 {
		return Stage{}, false
	}
	return stages[i], true
}

// Workers returns the stages with replicas that consume events as a worker set, the
// optional ones among them.
func (m Models) Workers() []Stage {
	return slices.DeleteFunc(m.possible(), func(s Stage) bool { return s.Kind != Worker })
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
