package events

import (
	"fmt"
	"math"
)

// AnswerReward is the Code LLM's reward for one answer.
type AnswerReward struct {
	Reward    float64 `msgpack:"reward"`
	Advantage float64 `msgpack:"advantage"`
	Loads     bool    `msgpack:"loads"`
	Masked    bool    `msgpack:"masked,omitempty"` // infrastructure failure: left out of means and training
}

func (a *AnswerReward) fields(c *coder) {
	field(c, "reward", &a.Reward, float)
	field(c, "advantage", &a.Advantage, float)
	field(c, "loads", &a.Loads, boolean)
	optional(c, "masked", &a.Masked, boolean)
}

// SuiteReward is the Test LLM's reward for one suite, term by term.
type SuiteReward struct {
	Reward    float64 `msgpack:"reward"`
	Advantage float64 `msgpack:"advantage"`
	RVal      float64 `msgpack:"r_val"`             // validity term
	RAdv      float64 `msgpack:"r_adv"`             // adversarial term
	Penalty   float64 `msgpack:"penalty,omitempty"` // for unprintable characters, >= 0
	Pass      float64 `msgpack:"pass"`              // the suite's part of its answer's reward, before averaging
	PassNew   float64 `msgpack:"pass_new"`
	FailNew   float64 `msgpack:"fail_new"`
	PassHist  float64 `msgpack:"pass_hist"`
	FailHist  float64 `msgpack:"fail_hist"`
	Valid     int     `msgpack:"valid"`   // in R_val: the kept tests
	Invalid   int     `msgpack:"invalid"` // in R_val: the tests that are wrong as stated or discarded
	Masked    bool    `msgpack:"masked,omitempty"`
}

func (s *SuiteReward) fields(c *coder) {
	field(c, "reward", &s.Reward, float)
	field(c, "advantage", &s.Advantage, float)
	field(c, "r_val", &s.RVal, float)
	field(c, "r_adv", &s.RAdv, float)
	optional(c, "penalty", &s.Penalty, float)
	field(c, "pass", &s.Pass, float)
	field(c, "pass_new", &s.PassNew, float)
	field(c, "fail_new", &s.FailNew, float)
	field(c, "pass_hist", &s.PassHist, float)
	field(c, "fail_hist", &s.FailHist, float)
	field(c, "valid", &s.Valid, integer)
	field(c, "invalid", &s.Invalid, integer)
	optional(c, "masked", &s.Masked, boolean)
}

// BookDelta is one change of the Mistake Book for the group's problem.
// Decrements come before increments.
type BookDelta struct {
	Call     string `msgpack:"call"`
	Expected string `msgpack:"expect"`
	Change   int    `msgpack:"change"` // never 0
}

func (d *BookDelta) fields(c *coder) {
	field(c, "call", &d.Call, text)
	field(c, "expect", &d.Expected, text)
	field(c, "change", &d.Change, integer)
}

// GroupRewarded holds the rewards of a group. The Mistake Book reads no other
// event.
type GroupRewarded struct {
	Plan        Plan            `msgpack:"plan"`
	ProblemID   string          `msgpack:"problem"`
	CodeVersion int             `msgpack:"code_version"`
	TestVersion int             `msgpack:"test_version"`
	Recipe      string          `msgpack:"recipe"`  // reward recipe, for example "a1"
	Alpha       float64         `msgpack:"alpha"`   // weight of validity against the adversarial term
	Code        []AnswerReward  `msgpack:"code"`    // M
	Test        [][]SuiteReward `msgpack:"test"`    // M x N
	TopVar      int             `msgpack:"top_var"` // the answer whose suites the Test LLM learns from; -1 for none
	Deltas      []BookDelta     `msgpack:"deltas,omitempty"`
}

func (g *GroupRewarded) fields(c *coder) {
	field(c, "plan", &g.Plan, object)
	field(c, "problem", &g.ProblemID, text)
	field(c, "code_version", &g.CodeVersion, integer)
	field(c, "test_version", &g.TestVersion, integer)
	field(c, "recipe", &g.Recipe, text)
	field(c, "alpha", &g.Alpha, float)
	field(c, "code", &g.Code, objects)
	field(c, "test", &g.Test, suiteRewards)
	field(c, "top_var", &g.TopVar, integer)
	optionalList(c, "deltas", &g.Deltas, objects)
}

func suiteRewards(c *coder, rows *[][]SuiteReward) { list(c, rows, objects[SuiteReward]) }

// EventType implements Payload.
func (*GroupRewarded) EventType() Type { return TypeGroupRewarded }

// Validate implements Payload.
func (g *GroupRewarded) Validate() error {
	if err := g.Plan.Validate(); err != nil {
		return err
	}
	if g.ProblemID == "" {
		return invalid("problem", "is empty")
	}
	if g.Recipe == "" {
		return invalid("recipe", "is empty")
	}
	if len(g.Code) != g.Plan.Answers || len(g.Test) != g.Plan.Answers {
		return invalid("code", "%d answers and %d rows of suites, but the plan asks for %d", len(g.Code), len(g.Test), g.Plan.Answers)
	}
	for i := range g.Code {
		if !finite(g.Code[i].Reward, g.Code[i].Advantage) {
			return invalid(at("code", i), "reward and advantage must be finite")
		}
		if len(g.Test[i]) != g.Plan.Suites {
			return invalid(at("test", i), "%d suites, but the plan asks for %d", len(g.Test[i]), g.Plan.Suites)
		}
		for j := range g.Test[i] {
			if !finite(g.Test[i][j].Reward, g.Test[i][j].Advantage) {
				return invalid(at(at("test", i), j), "reward and advantage must be finite")
			}
		}
	}
	if g.TopVar < -1 || g.TopVar >= len(g.Code) {
		return invalid("top_var", "%d is not an answer of %d", g.TopVar, len(g.Code))
	}
	increments := false
	for i, d := range g.Deltas {
		switch {
		case d.Call == "" || d.Expected == "" || d.Change == 0:
			return invalid(at("deltas", i), "call and expect must not be empty and change not 0")
		case d.Change > 0:
			increments = true
		case increments:
			return invalid(at("deltas", i), "a decrement after an increment")
		}
	}
	return nil
}

// normalize replaces nil lists, because the schemas allow no null.
func (g *GroupRewarded) normalize() {
	for i := range g.Test {
		g.Test[i] = notNil(g.Test[i])
	}
}

// MaxShadows is the largest number of recipes in a RewardShadowed.
const MaxShadows = 8

// RewardShadowed holds the rewards of a group under recipes that are not that of its
// run. No stage of the training reads it.
type RewardShadowed struct {
	Plan      Plan           `msgpack:"plan"`
	ProblemID string         `msgpack:"problem"`
	Shadows   []ShadowReward `msgpack:"shadows"` // 1 to MaxShadows
}

// ShadowReward holds the rewards of a group under one recipe, and compares them with
// those of the run.
type ShadowReward struct {
	Recipe  string          `msgpack:"recipe"`
	Alpha   float64         `msgpack:"alpha"`
	Failure string          `msgpack:"failure,omitempty"` // why the recipe cannot reward the group; then all below is empty
	Code    []AnswerReward  `msgpack:"code"`              // M
	Test    [][]SuiteReward `msgpack:"test"`              // M x N
	TopVar  int             `msgpack:"top_var"`           // the answer whose suites the Test LLM would learn from; -1 for none
	Other   bool            `msgpack:"other"`             // TopVar is not that of the run
	// Pairs are the pairs of answers that are rewarded in the run and under this recipe.
	// Reversed are those with the other order under this recipe.
	Pairs    int `msgpack:"pairs"`
	Reversed int `msgpack:"reversed"`
}

// EventType implements Payload.
func (*RewardShadowed) EventType() Type { return TypeRewardShadowed }

// Validate implements Payload.
func (r *RewardShadowed) Validate() error {
	if n := len(r.Shadows); n < 1 || n > MaxShadows {
		return invalid("shadows", "%d recipes, want 1 to %d", n, MaxShadows)
	}
	for i := range r.Shadows {
		s := &r.Shadows[i]
		if s.Failure != "" {
			if s.Recipe == "" || len(s.Code)+len(s.Test) > 0 {
				return invalid(at("shadows", i), "a failure has a recipe and no rewards")
			}
			if err := checkText("failure", s.Failure); err != nil {
				return err
			}
			continue
		}
		rewarded := GroupRewarded{Plan: r.Plan, ProblemID: r.ProblemID, Recipe: s.Recipe, Code: s.Code, Test: s.Test, TopVar: s.TopVar}
		if err := rewarded.Validate(); err != nil {
			return fmt.Errorf("%s: %w", at("shadows", i), err)
		}
		if s.Pairs < 0 || s.Reversed < 0 || s.Reversed > s.Pairs {
			return invalid(at("shadows", i), "%d of %d pairs are reversed", s.Reversed, s.Pairs)
		}
	}
	return r.Plan.Validate()
}

// normalize replaces nil lists, because the schemas allow no null.
func (r *RewardShadowed) normalize() {
	for i := range r.Shadows {
		s := &r.Shadows[i]
		s.Code, s.Test = notNil(s.Code), notNil(s.Test)
		for m := range s.Test {
			s.Test[m] = notNil(s.Test[m])
		}
	}
}

func finite(values ...float64) bool {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// DropReason is the reason why a group left the pipeline.
type DropReason string

// The reasons to drop a group.
const (
	DropInfrastructure DropReason = "infrastructure"   // every answer of the group was lost to infrastructure failures
	DropTooLarge       DropReason = "too_large"        // a prompt or the next payload is over its size limit
	DropRetries        DropReason = "retries"          // the stage failed on it too many times
	DropMalformed      DropReason = "malformed"        // the event could not be decoded
	DropStale          DropReason = "stale"            // sampled by a policy version beyond the staleness bound
	DropLineage        DropReason = "lineage_conflict" // descends from a payload that another one under the same ID displaced
)

// GroupDropped reports that a group leaves the pipeline, with the reason.
type GroupDropped struct {
	Purpose Purpose    `msgpack:"purpose"`
	Step    int        `msgpack:"step"`
	Slot    int        `msgpack:"slot"`
	Groups  int        `msgpack:"groups"`
	Stage   string     `msgpack:"stage"`
	Reason  DropReason `msgpack:"reason"`
	Detail  string     `msgpack:"detail,omitempty"`
}

// EventType implements Payload.
func (*GroupDropped) EventType() Type { return TypeGroupDropped }

// Validate implements Payload.
func (g *GroupDropped) Validate() error {
	if g.Stage == "" {
		return invalid("stage", "is empty")
	}
	if g.Reason == "" {
		return invalid("reason", "is empty")
	}
	return checkText("detail", g.Detail)
}
