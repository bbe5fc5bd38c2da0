package events

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStages(t *testing.T) {
	names := map[string]bool{}
	for _, s := range Stages {
		if err := ValidName(s.Name); err != nil {
			t.Errorf("stage %q: %v", s.Name, err)
		}
		if names[s.Name] {
			t.Errorf("stage %q is there twice", s.Name)
		}
		names[s.Name] = true
		if s.Within != "" && !names[s.Within] {
			t.Errorf("stage %q is within %q, which is not before it", s.Name, s.Within)
		}
		for _, typ := range slices.Concat(s.Consumes, s.Makes) {
			if CurrentVersion(typ) == 0 {
				t.Errorf("stage %q: unknown type %q", s.Name, typ)
			}
		}
		if s.Kind == Worker && (len(s.Consumes) != 1 || len(s.Makes) != 1 || s.Replicas != Many) {
			t.Errorf("worker stage %q consumes %v, makes %v, replicas %s: want one type each and many replicas", s.Name, s.Consumes, s.Makes, s.Replicas)
		}
		if found, ok := ModelsBoth.Stage(s.Name); ok != (s.Name != StageJudge) || ok && !cmp.Equal(found, s) {
			t.Errorf("Stage(%q) = %v, %v", s.Name, found, ok)
		}
	}
	if _, ok := ModelsBoth.Stage("none"); ok {
		t.Error("a stage named none")
	}
}

func TestStagesMakeEveryType(t *testing.T) {
	made := map[Type]bool{TypeStageHeartbeat: true}
	for _, s := range Stages {
		for _, typ := range s.Makes {
			made[typ] = true
		}
	}
	if diff := cmp.Diff(Types(), slices.Sorted(maps.Keys(made))); diff != "" {
		t.Errorf("types that no stage makes (-) or that do not exist (+):\n%s", diff)
	}
}

func TestStagesOfRoles(t *testing.T) {
	for role, want := range map[Role][2]string{
		RoleCode: {StageRolloutCode, StageTrainerCode},
		RoleTest: {StageRolloutTest, StageTrainerTest},
		"":       {"", ""},
	} {
		if got := [2]string{RolloutStage(role).Name, TrainerStage(role).Name}; got != want {
			t.Errorf("stages of role %q: %q, want %q", role, got, want)
		}
	}
}

func TestCauses(t *testing.T) {
	want := map[Type]Type{
		TypeCodeSampled:    TypeProblemPosed,
		TypeTestsSampled:   TypeCodeSampled,
		TypeCodeExecuted:   TypeTestsSampled,
		TypeGroupRewarded:  TypeCodeExecuted,
		TypeRewardShadowed: TypeCodeExecuted,
		TypeEvalScored:     TypeCodeExecuted,
	}
	if diff := cmp.Diff(want, ModelsBoth.Causes()); diff != "" {
		t.Error(diff)
	}
	all := map[Type][]Type{TypeCodeExecuted: {TypeTestsSampled, TypeCodeSampled, TypeCodeJudged}, TypeCodeJudged: {TypeCodeSampled}, TypeTestsSampled: {TypeCodeSampled, TypeCodeJudged}}
	for effect, cause := range want {
		if all[effect] == nil {
			all[effect] = []Type{cause}
		}
	}
	if diff := cmp.Diff(all, Causes()); diff != "" {
		t.Error(diff)
	}
	// A judge comes before the suites.
	before := maps.Clone(want)
	before[TypeCodeJudged], before[TypeTestsSampled] = TypeCodeSampled, TypeCodeJudged
	if diff := cmp.Diff(before, ModelsJudgedBoth.Causes()); diff != "" {
		t.Error(diff)
	}
	// Without a Test LLM, nothing samples suites and verdicts follow from answers.
	delete(want, TypeTestsSampled)
	want[TypeCodeExecuted] = TypeCodeSampled
	if diff := cmp.Diff(want, ModelsCode.Causes()); diff != "" {
		t.Error(diff)
	}
	// A judge comes between the two.
	want[TypeCodeJudged], want[TypeCodeExecuted] = TypeCodeSampled, TypeCodeJudged
	if diff := cmp.Diff(want, ModelsJudged.Causes()); diff != "" {
		t.Error(diff)
	}
}

func TestModelsOfARun(t *testing.T) {
	last := map[Role]int{RoleCode: 5, RoleTest: 3}
	if got := [2]int{ModelsBoth.Trained(last), ModelsCode.Trained(last)}; got != [2]int{3, 5} {
		t.Errorf("the last steps are %v, want 3 and 5", got)
	}
	absent := func(m Models) (names []string) {
		for _, s := range Stages {
			if _, ok := m.Stage(s.Name); !ok {
				names = append(names, s.Name)
			}
		}
		return names
	}
	if diff := cmp.Diff([]string{StageJudge, StageRolloutTest, StageTrainerTest}, absent(ModelsCode)); diff != "" {
		t.Errorf("stages that a run without a Test LLM lacks:\n%s", diff)
	}
	if diff := cmp.Diff([]string{StageRolloutTest, StageTrainerTest}, absent(ModelsJudged)); diff != "" {
		t.Errorf("stages that a run with a judge lacks:\n%s", diff)
	}
	trainer, _ := ModelsShared.Stage(StageTrainerCode)
	_, sampled := ModelsShared.Stage(StageRolloutTest)
	_, second := ModelsShared.Stage(StageTrainerTest)
	if !slices.Contains(trainer.Consumes, TypeTestsSampled) || !sampled || second || ModelsShared.Policy(RoleTest) != RoleCode || ModelsBoth.Policy(RoleTest) != RoleTest {
		t.Errorf("a shared model: the trainer reads %v, a rollout of role test: %v, its trainer: %v", trainer.Consumes, sampled, second)
	}
	if trainer, _ := ModelsBoth.Stage(StageTrainerCode); slices.Contains(trainer.Consumes, TypeTestsSampled) {
		t.Error("the shared model has changed the stages of two models")
	}
	for _, m := range unjudged {
		with := m.WithJudge()
		var want []string
		for _, name := range absent(m) {
			if name != StageJudge {
				want = append(want, name)
			}
		}
		if diff := cmp.Diff(want, absent(with)); diff != "" || !with.Judged() || m.Judged() || with.withoutJudge() != m || with.Validate() != nil {
			t.Errorf("%q with a judge is %q: %s", m, with, diff)
		}
		if with.WithoutTest() != m.WithoutTest() || with.Shared() != m.Shared() || !slices.Equal(with.TrainedRoles(), m.TrainedRoles()) ||
			with.Policy(RoleTest) != m.Policy(RoleTest) || with.Version(RoleTest, 3) != m.Version(RoleTest, 3) {
			t.Errorf("%q has other models than %q", with, m)
		}
	}
	for role, frozen := range map[Role]Models{RoleCode: ModelsFrozenCode, RoleTest: ModelsFrozenTest} {
		if diff := cmp.Diff([]string{StageJudge, TrainerStage(role).Name}, absent(frozen)); diff != "" {
			t.Errorf("stages that %s lacks:\n%s", frozen, diff)
		}
		if len(frozen.Roles()) != 2 || frozen.Version(role, 3) != 0 || frozen.Trained(last) != max(8-last[role], 0) {
			t.Errorf("%s has the models %v, v%d after 3 steps, and is trained to step %d", frozen, frozen.Roles(), frozen.Version(role, 3), frozen.Trained(last))
		}
		course := NewCourse()
		course.Apply(&RunStarted{Attempt: 1, Models: frozen})
		if course.Check(&PolicyUpdated{Role: role, Version: 1}) == nil {
			t.Errorf("%s: a version of the frozen model is in turn", frozen)
		}
	}
	start := Checkpoint{URI: "file:///c", SHA256: strings.Repeat("0", 64)}
	for _, c := range []struct {
		started RunStarted
		valid   bool
	}{
		{RunStarted{Attempt: 1, Code: start, Test: start}, true},
		{RunStarted{Attempt: 1, Code: start}, false},
		{RunStarted{Attempt: 1, Code: start, Models: ModelsCode}, true},
		{RunStarted{Attempt: 1, Test: start, Models: ModelsCode}, false},
		{RunStarted{Attempt: 1, Code: start, Models: ModelsFrozenTest}, false},
		{RunStarted{Attempt: 1, Code: start, Test: start, Models: "three"}, false},
	} {
		if err := c.started.Validate(); (err == nil) != c.valid {
			t.Errorf("models %q: %v", c.started.Models, err)
		}
	}
}
