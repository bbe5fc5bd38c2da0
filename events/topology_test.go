package events

import (
	"maps"
	"slices"
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
		if found, ok := StageNamed(s.Name); !ok || !cmp.Equal(found, s) {
			t.Errorf("StageNamed(%q) = %v, %v", s.Name, found, ok)
		}
	}
	if _, ok := StageNamed("none"); ok {
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
		TypeCodeSampled:   TypeProblemPosed,
		TypeTestsSampled:  TypeCodeSampled,
		TypeCodeExecuted:  TypeTestsSampled,
		TypeGroupRewarded: TypeCodeExecuted,
		TypeEvalScored:    TypeCodeExecuted,
	}
	if diff := cmp.Diff(want, Causes()); diff != "" {
		t.Error(diff)
	}
}
