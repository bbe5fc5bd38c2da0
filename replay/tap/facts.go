package tap

import (
	"math"
	"slices"
	"strings"

	"codea1/events"
	"codea1/replay/export"
)

// facts are the figures of an event that its line shows and that --where can name.
type facts struct {
	role    string
	step    int
	problem string
	version int
	// These are NaN if the event does not say them. Masked answers and suites
	// are left out.
	passRate   float64 // share that passes: of the tests that ran, of the new tests in rewards, of the answers in an evaluation
	reward     float64 // mean of the model's sequences; of the answers in a group
	testReward float64 // mean of the suites in a group
}

// factNames are the names in an expression with a value of their type.
var factNames = map[string]any{
	"type": "", "group": "", "run": "", "source": "", "role": "", "step": 0, "problem": "", "version": 0,
	"pass_rate": 0.0, "reward": 0.0, "test_reward": 0.0, "payload": map[string]any{},
}

// names returns the names in an expression, sorted.
func names() string {
	var all []string
	for name := range factNames {
		all = append(all, name)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// env returns the values of factNames for an event.
func (f *facts) env(e *events.Event, withPayload bool) map[string]any {
	values := map[string]any{
		"type": string(e.Type), "group": e.Group, "run": e.Run, "source": e.Source, "role": f.role, "step": f.step, "problem": f.problem,
		"version": f.version, "pass_rate": f.passRate, "reward": f.reward, "test_reward": f.testReward, "payload": map[string]any(nil),
	}
	if withPayload {
		values["payload"] = export.Payload(e.Payload)
	}
	return values
}

// factsOf returns the facts of an event.
func factsOf(e *events.Event) facts {
	none := math.NaN()
	f := facts{passRate: none, reward: none, testReward: none}
	if plan, ok := events.PlanOf(e.Payload); ok {
		f.step = plan.Step
	}
	switch p := e.Payload.(type) {
	case *events.ProblemPosed:
		f.problem = p.Problem.ID
	case *events.CodeSampled:
		f.role, f.problem, f.version = string(events.RoleCode), p.Posed.Problem.ID, p.Version
	case *events.TestsSampled:
		f.role, f.problem, f.version = string(events.RoleTest), p.Posed.Problem.ID, p.Version
	case *events.CodeExecuted:
		f.problem, f.passRate = p.ProblemID, executedRate(p)
	case *events.GroupRewarded:
		f.problem = p.ProblemID
		var code, test, pass mean
		for m := range p.Code {
			code.add(p.Code[m].Reward, p.Code[m].Masked)
			for n := range p.Test[m] {
				s := &p.Test[m][n]
				test.add(s.Reward, s.Masked)
				pass.add(s.PassNew, s.Masked)
			}
		}
		f.reward, f.testReward, f.passRate = code.value(), test.value(), pass.value()
	case *events.EvalScored:
		f.problem = p.ProblemID
		var correct mean
		for _, c := range p.Correct {
			correct.addBool(c)
		}
		f.passRate = correct.value()
	case *events.PolicyUpdated:
		f.role, f.step, f.version, f.reward = string(p.Role), p.Step, p.Version, p.Metrics.RewardMean
	case *events.GroupDropped:
		f.step = p.Step
	case *events.RunFinished:
		f.step = p.Steps
	}
	return f
}

// executedRate returns the share of the tests that ran on the answers of a group and
// that the answers passed.
func executedRate(p *events.CodeExecuted) float64 {
	var rate mean
	for m := range p.Answers {
		a := &p.Answers[m]
		if a.Failure != "" {
			continue
		}
		for _, v := range a.Historical {
			rate.addBool(v == events.VerdictPass)
		}
		for i := range a.Golden {
			rate.addBool(a.Golden[i].Verdict == events.VerdictPass)
		}
		for n := range a.Suites {
			for i := range a.Suites[n].Tests {
				if t := &a.Suites[n].Tests[i]; t.Status == events.StatusKept {
					rate.addBool(t.Verdict == events.VerdictPass)
				}
			}
		}
	}
	return rate.value()
}

// mean is the mean of values; NaN without any.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v float64, masked bool) {
	if !masked {
		m.sum += v
		m.n++
	}
}

func (m *mean) addBool(b bool) {
	if b {
		m.sum++
	}
	m.n++
}

func (m *mean) value() float64 { return m.sum / float64(m.n) }
