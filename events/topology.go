package events

import "slices"

// Names of the stages. A stage name is written here and nowhere else in
// production code: the root package's border test checks it.
const (
	StageRecorder    = "recorder"
	StageCurriculum  = "curriculum"
	StageRolloutCode = "rollout-code"
	StageRolloutTest = "rollout-test"
	StageJudge       = "judge"
	StageExecution   = "execution"
	StageRewards     = "rewards"
	StageEvaluation  = "evaluation"
	StageShadow      = "shadow"
	StageTrainerCode = "trainer-code"
	StageTrainerTest = "trainer-test"
	StageDashboard   = "dashboard"
)

// StageKind says how a stage takes events from the bus.
type StageKind string

// The two kinds of stages.
const (
	// Worker is a stateless stage. Its replicas compete for events as one worker
	// set, and each event leads to events whose IDs derive from it.
	Worker StageKind = "worker"
	// Projection is a stage that reads events in order from a position that it
	// stores together with its state.
	Projection StageKind = "projection"
)

// Replicas says how many processes of a stage may work on a run at a time.
type Replicas string

// The two numbers of replicas.
const (
	One  Replicas = "one"  // the owner of the stage's lease
	Many Replicas = "many" // any number
)

// Stage is one kind of process of the pipeline. Worker sets, leases, the causes
// that the log checks, the commands of the CLI and metric labels derive from it.
type Stage struct {
	Name     string
	Summary  string // one sentence, for help texts and tables
	Kind     StageKind
	Replicas Replicas
	Role     Role   // the model of a rollout or trainer stage; empty for the others
	Within   string // the stage whose process runs this one; empty for a process of its own
	// Optional marks a worker that only runs that ask for it have. No other stage waits
	// for its events, and it never drops a group.
	Optional bool
	Consumes []Type // a worker consumes one type; empty for all types
	// Makes are the event types that the stage publishes. A worker that is not
	// Optional may publish TypeGroupDropped besides, and a process that publishes anything
	// TypeStageHeartbeat.
	Makes []Type
}

// Stages are all stages, in the order in which a group meets them. Models.Stages has
// those of a run. To add a stage, add an entry here and its handler in the root package.
var Stages = []Stage{
	{
		Name: StageRecorder, Kind: Projection, Replicas: One,
		Summary: "Start or resume a run: write its event log and Mistake Book, and pose the problems.",
		Makes:   []Type{TypeRunStarted, TypeGroupDropped, TypeRunFinished},
	},
	{
		Name: StageCurriculum, Kind: Projection, Replicas: One, Within: StageRecorder,
		Summary:  "Pose the problems that are due.",
		Consumes: []Type{TypeRunStarted, TypeProblemPosed, TypeEvalScored, TypeGroupDropped, TypePolicyUpdated},
		Makes:    []Type{TypeProblemPosed},
	},
	{
		Name: StageRolloutCode, Kind: Worker, Replicas: Many, Role: RoleCode,
		Summary:  "Sample answers from the Code LLM.",
		Consumes: []Type{TypeProblemPosed}, Makes: []Type{TypeCodeSampled},
	},
	{
		Name: StageJudge, Kind: Worker, Replicas: Many,
		Summary:  "Judge answers before they run, if the reward needs it.",
		Consumes: []Type{TypeCodeSampled}, Makes: []Type{TypeCodeJudged},
	},
	{
		Name: StageRolloutTest, Kind: Worker, Replicas: Many, Role: RoleTest,
		Summary:  "Sample test suites from the Test LLM.",
		Consumes: []Type{TypeCodeSampled}, Makes: []Type{TypeTestsSampled},
	},
	{
		Name: StageExecution, Kind: Worker, Replicas: Many,
		Summary:  "Run the tests on the answers, in the sandbox.",
		Consumes: []Type{TypeTestsSampled}, Makes: []Type{TypeCodeExecuted},
	},
	{
		Name: StageRewards, Kind: Worker, Replicas: Many,
		Summary:  "Turn verdicts into rewards.",
		Consumes: []Type{TypeCodeExecuted}, Makes: []Type{TypeGroupRewarded},
	},
	{
		Name: StageEvaluation, Kind: Worker, Replicas: Many,
		Summary:  "Score the held-out problems.",
		Consumes: []Type{TypeCodeExecuted}, Makes: []Type{TypeEvalScored},
	},
	{
		Name: StageShadow, Kind: Worker, Replicas: Many, Optional: true,
		Summary:  "Reward the groups of a run with --shadow under other recipes, too, without an effect on the run.",
		Consumes: []Type{TypeCodeExecuted}, Makes: []Type{TypeRewardShadowed},
	},
	{
		Name: StageTrainerCode, Kind: Projection, Replicas: One, Role: RoleCode,
		Summary:  "Train the Code LLM.",
		Consumes: []Type{TypeProblemPosed, TypeCodeSampled, TypeGroupRewarded, TypeGroupDropped}, Makes: []Type{TypePolicyUpdated},
	},
	{
		Name: StageTrainerTest, Kind: Projection, Replicas: One, Role: RoleTest,
		Summary:  "Train the Test LLM.",
		Consumes: []Type{TypeProblemPosed, TypeTestsSampled, TypeGroupRewarded, TypeGroupDropped}, Makes: []Type{TypePolicyUpdated},
	},
	{
		Name: StageDashboard, Kind: Projection, Replicas: Many,
		Summary: "Show the run on a page, and write its report when it is completed.",
	},
}

// RolloutStage returns the stage that samples from a role's model.
func RolloutStage(role Role) Stage { return stageOf(Worker, role) }

// TrainerStage returns the stage that trains a role's model.
func TrainerStage(role Role) Stage { return stageOf(Projection, role) }

func stageOf(kind StageKind, role Role) Stage {
	i := slices.IndexFunc(Stages, func(s Stage) bool { return s.Kind == kind && s.Role == role && role != "" })
	if i < 0 {
		return Stage{} // role.Validate reports it
	}
	return Stages[i]
}

// Causes returns, for each type that follows from another event, the types of
// its possible causes: those of Models.Causes for every kind of run.
func Causes() map[Type][]Type {
	causes := make(map[Type][]Type)
	for _, m := range []Models{ModelsBoth, ModelsCode, ModelsJudged, ModelsJudgedBoth} {
		for effect, cause := range m.Causes() {
			if !slices.Contains(causes[effect], cause) {
				causes[effect] = append(causes[effect], cause)
			}
		}
	}
	return causes
}

// EndTypes returns the types of which one event ends a group.
func EndTypes() []Type { return []Type{TypeGroupRewarded, TypeGroupDropped, TypeEvalScored} }
