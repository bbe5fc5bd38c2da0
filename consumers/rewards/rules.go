package rewards

import (
	"slices"

	"codea1/events"
)

// Rules hold the decisions of a recipe beyond the reward of one response: the
// sets in which rewards are compared, the answer that the Test LLM learns from,
// and the changes of the Mistake Book.
type Rules struct {
	// Alpha is the weight of validity against the adversarial term; 0 for a
	// recipe without one.
	Alpha float64
	// TrainsTest is whether the Test LLM is trained: its suites are rewarded, one
	// answer's suites are chosen to learn from, and failures enter the Mistake
	// Book.
	TrainsTest bool

	Advantage Advantage
	Compare   Comparison
	Choose    Choice
	Remember  bool         // new tests that fail enter the Mistake Book
	Forget    bool         // historical tests that pass lose count in it
	Bands     []Band       // weights of the advantages by difficulty, the hardest first; none for 1
	Golden    bool         // golden tests must be run on the answers
	Cross     bool         // the tests of all suites must be run on all answers
	Probe     events.Probe // kind of the probes that the tests must be run on; empty for none
	Predict   bool         // the problems must be predict problems
	Judge     events.Judge // that must have judged the answers; empty for none
}

// paperRules are the rules of Code-A1.
var paperRules = Rules{
	TrainsTest: true, Advantage: AdvantageStd, Compare: CompareAnswer, Choose: ChooseMaxStd, Remember: true, Forget: true,
}

// Advantage is the unit in which a reward is compared with those of its set.
type Advantage string

// The advantages.
const (
	AdvantageStd        Advantage = "std"        // distance to the mean in standard deviations: Advantages
	AdvantageMean       Advantage = "mean"       // distance to the mean in reward: Centred
	AdvantagePopulation Advantage = "population" // distance to the mean in standard deviations of the whole population: Standardised
)

// Comparison selects the suites that form one set.
type Comparison string

// The comparisons.
const (
	// CompareAnswer compares the N suites of an answer with each other: their
	// prompt showed that answer.
	CompareAnswer Comparison = "answer"
	// CompareGroup compares all suites of a group with each other: their prompt
	// showed the question alone. Suites of answers that do not load are left out
	// and have advantage 0.
	CompareGroup Comparison = "group"
)

// Choice selects the answer that the Test LLM learns from.
type Choice string

// The choices.
const (
	ChooseMaxStd  Choice = "max_std"  // TopVar
	ChooseMaxMean Choice = "max_mean" // TopMean
	ChooseNone    Choice = "none"     // the Test LLM does not learn
)

// Band is the weight of the groups up to a mean reward of their answers. The
// mean reward measures the difficulty of the problem, because every log
// records it.
type Band struct {
	UpTo   float64 // mean R_code of the group, within [0, 1]
	Weight float64 // factor of all advantages of the group, 0 or more
}

// choose returns the answer that the Test LLM learns from, -1 for none.
func (r *Rules) choose(suites [][]events.SuiteReward) int {
	switch r.Choose {
	case ChooseNone:
		return -1
	case ChooseMaxMean:
		return TopMean(suites)
	}
	return TopVar(suites)
}

// deltas returns the group's changes of the Mistake Book.
func (r *Rules) deltas(group *events.CodeExecuted) []events.BookDelta {
	kept := slices.DeleteFunc(Deltas(group), func(d events.BookDelta) bool {
		return d.Change > 0 && !r.Remember || d.Change < 0 && !r.Forget
	})
	if len(kept) == 0 {
		return nil
	}
	return kept
}

// setAdvantages sets the advantages of the answers of a group, relative to each
// other, and those of its suites, relative to the set that Compare selects. A
// masked answer or suite is in no set and keeps advantage 0.
func (r *Rules) setAdvantages(g *events.GroupRewarded) {
	var answers []*events.AnswerReward
	var rewards []float64
	for m := range g.Code {
		if !g.Code[m].Masked {
			answers = append(answers, &g.Code[m])
			rewards = append(rewards, g.Code[m].Reward)
		}
	}
	weight := r.weight(rewards)
	for i, a := range r.advantages(rewards, weight) {
		answers[i].Advantage = a
	}
	var set []*events.SuiteReward
	rewards = nil
	for m := range g.Test {
		suites, earned := unmasked(g.Test[m])
		if r.Compare == CompareGroup {
			if g.Code[m].Loads {
				set, rewards = append(set, suites...), append(rewards, earned...)
			}
			continue
		}
		for i, a := range r.advantages(earned, weight) {
			suites[i].Advantage = a
		}
	}
	for i, a := range r.advantages(rewards, weight) {
		set[i].Advantage = a
	}
}

func (r *Rules) advantages(rewards []float64, weight float64) []float64 {
	compare := Advantages
	switch r.Advantage {
	case AdvantageMean:
		compare = Centred
	case AdvantagePopulation:
		compare = Standardised
	}
	advantages := compare(rewards)
	if weight != 1 {
		for i := range advantages {
			advantages[i] *= weight
		}
	}
	return advantages
}

// weight returns the factor of the group's advantages, given the rewards of its
// answers.
func (r *Rules) weight(rewards []float64) float64 {
	sum := 0.0
	for _, reward := range rewards {
		sum += reward
	}
	for _, b := range r.Bands {
		if sum <= b.UpTo*float64(len(rewards))+tieTolerance {
			return b.Weight
		}
	}
	return 1
}
