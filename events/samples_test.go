package events

import (
	"math"
	"strings"
	"time"
)

var sampleTime = time.Date(2026, 1, 2, 3, 4, 5, 678900000, time.UTC)

func samplePlan() Plan {
	return Plan{
		Purpose: PurposeTrain, Step: 12, Epoch: 1, Slot: 3, Groups: 8, CodeVersion: 11, TestVersion: 11,
		Answers: 2, Suites: 1, Tests: 3, Temperature: 1, CodeTokens: 64, TestTokens: 96, Seed: math.MaxUint64, Cross: true, Probes: "mutants", Judges: "findings,score",
	}
}

func samplePosed() ProblemPosed {
	return ProblemPosed{
		Plan: samplePlan(),
		Problem: Problem{
			ID: "train/00042", Question: "Return the sum of xs — naïve Ω.", EntryPoint: "solve",
			Solution: "def solve(xs):\n    return sum(xs)\n", Golden: []string{"assert solve([]) == 0"},
		},
		Historical: []HistoricalTest{{Call: "solve([1, 2])", Expected: "3", Count: 4}},
	}
}

func sampleCompletion(text string) Completion {
	return Completion{
		Text: text, Tokens: Int32s{1, -1, math.MaxInt32}, Finish: FinishStop,
		LogProbs: Float32s{-0.25, float32(math.Inf(-1)), -math.SmallestNonzeroFloat32},
	}
}

// samples holds one payload of every type with every field set.
func samples() []Payload {
	checkpoint := Checkpoint{URI: "file:///runs/r1/checkpoints/code/v000012", SHA256: strings.Repeat("0f", 32), FilesSHA256: strings.Repeat("a5", 32)}
	posed := samplePosed()
	judged := &Judged{
		Judges: "findings,score", Engine: "bandit 1.9.4, reward-model", Lines: 2,
		Answers: []Judgement{
			{Lines: 3, Blocks: 1, Parses: true, Findings: []Finding{{ID: "B602", Severity: SeverityHigh, Confidence: SeverityMedium, Line: 2}}, Score: -1.5, Safe: true},
			{Failures: []Unjudged{{Judge: JudgeScore, Reason: "its prompt is too long"}}},
		},
	}
	given := samplePosed()
	given.Plan.Purpose, given.Plan.Tag = PurposeEval, "before"
	given.Given = []string{"def solve(xs): return 0", "def solve(xs): return 1"}
	return []Payload{
		&RunStarted{
			Attempt: 2, Steps: 100, Build: "codea1 v0.1.0 go1.26", Config: "seed: 7\n", ProblemSet: "builtin:train",
			Problems: 2000, Code: checkpoint, Test: checkpoint,
		},
		&given,
		&CodeSampled{
			Posed: posed, Version: 11, Prompt: Int32s{5, 6, 7},
			Answers: []Completion{sampleCompletion("```python\npass\n```"), sampleCompletion("")},
		},
		&TestsSampled{
			Posed: posed, CodeVersion: 11, Version: 11, Codes: []string{"pass", ""}, Prompts: []Int32s{{1}, {}},
			Suites: [][]Completion{{sampleCompletion("assert solve([]) == 0")}, {sampleCompletion("?")}}, Judged: judged,
		},
		&CodeExecuted{
			Judged: judged,
			Plan:   samplePlan(), ProblemID: "train/00042", CodeVersion: 11, TestVersion: 11, Given: true, Historical: posed.Historical,
			Answers: []ExecutedAnswer{
				{
					Loads: true, Historical: []Verdict{VerdictPass}, Golden: []GoldenVerdict{{Verdict: VerdictFail, InProcess: true, Detail: "1"}},
					Suites: []ExecutedSuite{{
						Chars: 40, Unprintable: 2,
						Tests: []ExecutedTest{
							{Source: "assert solve([]) == 1", Status: StatusKept, Call: "solve([])", Stated: "1", Expected: "0", Wrong: true, Verdict: VerdictPass},
							{Source: "assert solve", Status: StatusUnparsable, Verdict: VerdictNotRun, Detail: "not a comparison"},
						},
					}},
				},
				{LoadError: "SyntaxError", Failure: "sandbox died", Historical: []Verdict{VerdictNotRun}, Suites: []ExecutedSuite{{Failure: "sandbox died"}}},
			},
			Cross:  &Cross{Tests: 2, Passed: []Bits{{0b01}, {}}, Failed: []Bits{{0b10}, {}}},
			Probes: []Probes{{Probe: ProbeMutants, Engine: "mutants-1", Total: 9, Hash: strings.Repeat("ab", 32), Hits: []Bits{{0b11, 1}}, Difficulty: 0.25}},
		},
		&GroupRewarded{
			Plan: samplePlan(), ProblemID: "train/00042", CodeVersion: 11, TestVersion: 11, Recipe: "a1", Alpha: 0.5,
			Code: []AnswerReward{{Reward: 0.5, Advantage: 0.7071, Loads: true}, {Masked: true}},
			Test: [][]SuiteReward{
				{{Reward: 0.25, Advantage: 1, RVal: 0.5, RAdv: 0.25, Penalty: 0.125, Pass: 1, PassNew: 1, FailNew: 0.5, PassHist: 1, FailHist: 0.5, Valid: 2, Invalid: 1}},
				{{Masked: true}},
			},
			TopVar: 0,
			Deltas: []BookDelta{{Call: "solve([1, 2])", Expected: "3", Change: -1}, {Call: "solve([])", Expected: "0", Change: 2}},
		},
		&RewardShadowed{
			Plan: samplePlan(), ProblemID: "train/00042", Shadows: []ShadowReward{
				{
					Recipe: "utrl", Alpha: 0.5, Code: []AnswerReward{{Reward: 0.5, Advantage: 0.7071, Loads: true}, {Masked: true}},
					Test: [][]SuiteReward{{{Reward: 0.25, Valid: 2}}, {{Masked: true}}}, TopVar: -1, Other: true, Pairs: 1, Reversed: 1,
				},
				{Recipe: "cure", Failure: "the group lacks golden verdicts"},
			},
		},
		&GroupDropped{Purpose: PurposeTrain, Step: 12, Slot: 3, Groups: 8, Stage: "execution", Reason: DropInfrastructure, Detail: "sandbox died 3 times"},
		&PolicyUpdated{
			Role: RoleCode, Version: 12, Step: 12, Groups: []string{"s000012-q0003"}, Dropped: []string{"s000012-q0004"},
			Metrics: PolicyMetrics{
				Loss: 0.1, KL: 0.01, ClipFraction: 0.02, RatioMean: 1, Entropy: 0.9, GradNorm: 0.4, LearningRate: 1e-6,
				RewardMean: 0.5, Sequences: 2, Tokens: 6, Optimizer: 24, Seconds: 0.25,
			},
			Checkpoint: checkpoint,
		},
		&EvalScored{
			Plan: given.Plan, ProblemID: "heldout/00001", CodeVersion: 0, Correct: []bool{true, false}, TestVersion: 0,
			Suites: 4, Wanted: 12, Stated: 11, Right: 7, Defective: 4, Found: 2,
			Inputs: &InputCounts{Kept: 9, Trivial: 5, Reached: 3},
		},
		&StageHeartbeat{Stage: "execution", Beat: 3, Handled: 100, Failed: 1, InFlight: 2, Pending: 5, Busy: 0.5},
		&RunFinished{Attempt: 2, Steps: 100, Reason: RunCompleted},
		&CodeJudged{Posed: posed, Version: 11, Codes: []string{"pass", ""}, Judged: judged},
	}
}

// sampleEvent puts a payload into a valid envelope with a cause.
func sampleEvent(p Payload) *Event {
	cause := New("r1", "s000012-q0003", "curriculum-0", sampleTime, &StageHeartbeat{Stage: "cause", Beat: 1})
	if _, err := Encode(cause); err != nil {
		panic(err)
	}
	return Caused(cause, "execution-0", sampleTime, p)
}
