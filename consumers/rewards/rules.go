package rewards

import "codea1/events"

// Rules are what a recipe decides beyond the reward of one response: who is
// compared with whom, what the Test LLM learns from, what is remembered.
type Rules struct {
	Advantage Advantage
	Compare   Comparison
	Choose    Choice
	Remember  bool   // new tests that fail enter the Mistake Book
	Forget    bool   // historical tests that pass step down in it
	Bands     []Band // weights of the advantages by difficulty, the hardest first; none for 1
	Golden    bool   // golden tests must be run on the answers
}

// paperRules are those of Code-A1 (design steps 7 to 9).
var paperRules = Rules{Advantage: AdvantageStd, Compare: CompareAnswer, Choose: ChooseMaxStd, Remember: true, Forget: true}

// Advantage says in which unit a reward is compared with those of its set.
type Advantage string

// The advantages.
const (
	AdvantageStd  Advantage = "std"  // distance to the mean in standard deviations: Advantages
	AdvantageMean Advantage = "mean" // distance to the mean in reward: Centred
)

// Comparison says which suites are one set.
type Comparison string

// The comparisons.
const (
	// CompareAnswer compares the N suites of an answer: they saw that answer.
	CompareAnswer Comparison = "answer"
	// CompareQuestion compares all suites of a question with each other, those
	// of answers that do not load left out (their advantage is 0): for suites
	// that saw the question alone.
	CompareQuestion Comparison = "question"
)

// Choice says which answer's suites the Test LLM learns from.
type Choice string

// The choices.
const (
	ChooseMaxStd  Choice = "max_std"  // TopVar
	ChooseMaxMean Choice = "max_mean" // TopMean
	ChooseNone    Choice = "none"     // none: the Test LLM does not learn
)

// Band weighs the groups up to a mean reward of their answers. The share of
// tests that a question's answers pass is the only difficulty that every log
// records.
type Band struct {
	UpTo   float64 // mean R_code of the group, within [0, 1]
	Weight float64 // factor of all advantages of the group, 0 or more
}

// choose returns the answer the Test LLM learns from, -1 for none.
func (r *Rules) choose(suites [][]events.SuiteReward) int {
	switch r.Choose {
	case ChooseNone:
		return -1
	case ChooseMaxMean:
		return TopMean(suites)
	}
	return TopVar(suites)
}

// deltas returns what the group changes in the Mistake Book.
func (r *Rules) deltas(group *events.CodeExecuted) []events.BookDelta {
	all := Deltas(group)
	if r.Remember && r.Forget {
		return all
	}
	var out []events.BookDelta
	for _, d := range all {
		if d.Change > 0 && r.Remember || d.Change < 0 && r.Forget {
			out = append(out, d)
		}
	}
	return out
}

// setAdvantages compares the answers of a group with each other, and its
// suites as the rules say. What is masked keeps advantage 0 and is as if it
// had never been in its set.
func (r *Rules) setAdvantages(g *events.GroupRewarded) {
	weight := r.weight(g)
	var answers []*events.AnswerReward
	var rewards []float64
	for m := range g.Code {
		if !g.Code[m].Masked {
			answers = append(answers, &g.Code[m])
			rewards = append(rewards, g.Code[m].Reward)
		}
	}
	for i, a := range r.advantages(rewards, weight) {
		answers[i].Advantage = a
	}
	var of []*events.SuiteReward // the question's suites
	rewards = nil
	for m := range g.Test {
		suites, earned := unmasked(g.Test[m])
		if r.Compare == CompareQuestion {
			if g.Code[m].Loads {
				of, rewards = append(of, suites...), append(rewards, earned...)
			}
			continue
		}
		for i, a := range r.advantages(earned, weight) {
			suites[i].Advantage = a
		}
	}
	for i, a := range r.advantages(rewards, weight) {
		of[i].Advantage = a
	}
}

func (r *Rules) advantages(rewards []float64, weight float64) []float64 {
	compare := Advantages
	if r.Advantage == AdvantageMean {
		compare = Centred
	}
	advantages := compare(rewards)
	if weight != 1 {
		for i := range advantages {
			advantages[i] *= weight
		}
	}
	return advantages
}

// weight returns the factor of the group's advantages.
func (r *Rules) weight(g *events.GroupRewarded) float64 {
	if len(r.Bands) == 0 {
		return 1
	}
	sum, n := 0.0, 0
	for m := range g.Code {
		if !g.Code[m].Masked {
			sum += g.Code[m].Reward
			n++
		}
	}
	for _, b := range r.Bands {
		if sum <= b.UpTo*float64(n)+tieTolerance {
			return b.Weight
		}
	}
	return 1
}
