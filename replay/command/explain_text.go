package command

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"codea1/events"
	"codea1/replay/query"
)

// explainGroup describes a group as text, from its problem to the weights that were
// trained on it.
func explainGroup(g *query.Lineage) string {
	b := &strings.Builder{}
	p := g.Posed
	fmt.Fprintf(b, "group %s: %s, step %d, problem %d of %d, posed to code v%d and test v%d or later\n",
		g.Group, p.Plan.Purpose, p.Plan.Step, p.Plan.Slot+1, p.Plan.Groups, p.Plan.CodeVersion, p.Plan.TestVersion)
	for i := range g.Events {
		m := &g.Events[i].Message
		fmt.Fprintf(b, "  event %-7d %-15s %s by %s", g.Events[i].Seq, m.Type, m.Time.Format("2006-01-02 15:04:05.000"), m.Source)
		if g.Events[i].Compacted {
			fmt.Fprint(b, ", without its tokens (compacted)")
		}
		fmt.Fprintln(b)
	}
	fmt.Fprintf(b, "\nproblem %s, entry point %s\n%s\nground truth\n%s", p.Problem.ID, p.Problem.EntryPoint, indent(p.Problem.Question), indent(p.Problem.Solution))
	fmt.Fprintf(b, "\nhistorical tests: %d\n", len(p.Historical))
	for i, h := range p.Historical {
		fmt.Fprintf(b, "  h%-3d assert %s == %s  # failed %d times\n", i, h.Call, h.Expected, h.Count)
	}
	explainAnswers(b, g)
	explainEnd(b, g)
	return b.String()
}

func explainAnswers(b *strings.Builder, g *query.Lineage) {
	if g.Code == nil {
		return
	}
	fmt.Fprintf(b, "\nanswers: %d by code v%d", len(g.Code.Answers), g.Code.Version)
	if g.Tests != nil {
		fmt.Fprintf(b, "; suites: %d each by test v%d", g.Posed.Plan.Suites, g.Tests.Version)
	}
	fmt.Fprintln(b)
	for m := range g.Code.Answers {
		answer := &g.Code.Answers[m]
		fmt.Fprintf(b, "\nanswer %d: %d tokens, %s", m, g.AnswerTokens(m), answer.Finish)
		if r := g.Rewarded; r != nil {
			if r.Code[m].Masked {
				fmt.Fprint(b, ", masked")
			} else {
				fmt.Fprintf(b, ", reward %.4f, advantage %+.4f", r.Code[m].Reward, r.Code[m].Advantage)
			}
		}
		fmt.Fprintf(b, "\n%s", indent(g.AnswerCode(m)))
		if g.Executed != nil {
			explainRuns(b, g, m)
		}
	}
}

func explainRuns(b *strings.Builder, g *query.Lineage, m int) {
	answer := &g.Executed.Answers[m]
	switch {
	case answer.Failure != "":
		fmt.Fprintf(b, "  lost to the infrastructure: %s\n", answer.Failure)
		return
	case !answer.Loads:
		fmt.Fprintf(b, "  does not load: %s\n", answer.LoadError)
	}
	if len(answer.Historical) > 0 {
		fmt.Fprintf(b, "  historical tests: %s\n", marks(answer.Historical))
	}
	if len(answer.Golden) > 0 {
		verdicts := make([]events.Verdict, len(answer.Golden))
		for i := range answer.Golden {
			verdicts[i] = answer.Golden[i].Verdict
		}
		fmt.Fprintf(b, "  golden tests:     %s\n", marks(verdicts))
	}
	for n := range answer.Suites {
		explainSuite(b, g, m, n)
	}
}

func explainSuite(b *strings.Builder, g *query.Lineage, m, n int) {
	suite := &g.Executed.Answers[m].Suites[n]
	if suite.Failure != "" {
		fmt.Fprintf(b, "  suite %d: lost to the infrastructure: %s\n", n, suite.Failure)
		return
	}
	kept, wrong, discarded := suite.Counts()
	fmt.Fprintf(b, "  suite %d: %d kept (%d wrong as stated), %d discarded", n, kept, wrong, discarded)
	if r := g.Rewarded; r != nil && !r.Test[m][n].Masked {
		t := &r.Test[m][n]
		fmt.Fprintf(b, ", reward %.4f, advantage %+.4f\n", t.Reward, t.Advantage)
		fmt.Fprintf(b, "    %s: alpha %.2f, R_val %.4f, R_adv %.4f, penalty %.4f; pass_new %.4f, fail_new %.4f, pass_hist %.4f, fail_hist %.4f; pass %.4f",
			r.Recipe, r.Alpha, t.RVal, t.RAdv, t.Penalty, t.PassNew, t.FailNew, t.PassHist, t.FailHist, t.Pass)
	}
	fmt.Fprintln(b)
	for i := range suite.Tests {
		t := &suite.Tests[i]
		if t.Status != events.StatusKept {
			fmt.Fprintf(b, "    %-10s %s", t.Status, clip(t.Source, 100))
		} else {
			fmt.Fprintf(b, "    %-10s assert %s == %s", t.Verdict, clip(t.Call, 80), clip(t.Expected, 60))
			if t.Wrong {
				fmt.Fprintf(b, "  (wrong as stated: %s)", clip(t.Stated, 60))
			}
		}
		if t.Detail != "" {
			fmt.Fprintf(b, "  # %s", clip(t.Detail, 80))
		}
		fmt.Fprintln(b)
	}
}

func explainEnd(b *strings.Builder, g *query.Lineage) {
	if d := g.Dropped; d != nil {
		fmt.Fprintf(b, "\ndropped by %s: %s: %s\n", d.Stage, d.Reason, d.Detail)
	}
	if s := g.Scored; s != nil {
		fmt.Fprintf(b, "\nscored: code v%d, %d answers scored; test v%d, %d of %d tests right as stated, defects found by %d of %d suites",
			s.CodeVersion, len(s.Correct), s.TestVersion, s.Right, s.Stated, s.Found, s.Defective)
		if in := s.Inputs; in != nil {
			fmt.Fprintf(b, " and reached by %d; %d of %d kept inputs trivial", in.Reached, in.Trivial, in.Kept)
		}
		fmt.Fprintln(b)
	}
	r := g.Rewarded
	if r == nil {
		return
	}
	if r.TopVar >= 0 {
		fmt.Fprintf(b, "\nTOPVAR: the Test LLM learns from the suites of answer %d\n", r.TopVar)
	}
	fmt.Fprintf(b, "\nMistake Book: %d changes\n", len(r.Deltas))
	for _, d := range r.Deltas {
		fmt.Fprintf(b, "  %+d  assert %s == %s\n", d.Change, clip(d.Call, 80), clip(d.Expected, 60))
	}
	if len(g.Updates) == 0 {
		fmt.Fprintf(b, "\nno update has been trained on the group\n")
	}
	for _, u := range g.Updates {
		s := query.ShareOf(g.Group, u.Role, g.Models, r)
		fmt.Fprintf(b, "\n%s v%d: trained in step %d with %d of its %d sequences\n  %s\n  sha256 %s\n",
			u.Role, u.Version, u.Step, s.Sequences, u.Metrics.Sequences, u.Checkpoint.URI, u.Checkpoint.SHA256)
	}
}

func explainStep(u *events.PolicyUpdated, shares []query.Share) string {
	b := &strings.Builder{}
	m := &u.Metrics
	fmt.Fprintf(b, "%s v%d: step %d, %d groups, %d sequences, %d tokens, %.1f s\n", u.Role, u.Version, u.Step, len(u.Groups), m.Sequences, m.Tokens, m.Seconds)
	fmt.Fprintf(b, "  %s\n  sha256 %s\n", u.Checkpoint.URI, u.Checkpoint.SHA256)
	fmt.Fprintf(b, "  reward %.4f, loss %.5f, KL %.5f, ratio %.5f, clipped %.4f, entropy %.4f, gradient norm %.4f, learning rate %.3g\n",
		m.RewardMean, m.Loss, m.KL, m.RatioMean, m.ClipFraction, m.Entropy, m.GradNorm, m.LearningRate)
	if d := m.Mismatch; d != nil {
		fmt.Fprintf(b, "  log-probs of trainer and sampler: %.5f apart on average, %.5f at most, KL %.6f, %.4f of the weights truncated\n",
			d.MeanAbs, d.Max, d.KL, d.Truncated)
	}
	if len(u.Dropped) > 0 {
		fmt.Fprintf(b, "  without %s\n", strings.Join(u.Dropped, ", "))
	}
	fmt.Fprintln(b)
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "GROUP\tPROBLEM\tSEQUENCES\tANSWER\tREWARD\tADVANTAGE")
	for _, s := range shares {
		answer := "all"
		if u.Role == events.RoleTest {
			answer = fmt.Sprint(s.Answer)
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%.4f\t%+.3f to %+.3f\n", s.Group, s.Problem, s.Sequences, answer, s.Mean, s.Least, s.Most)
	}
	_ = table.Flush() // a strings.Builder takes everything
	return b.String()
}

// marks returns a row of the verdict matrix: a letter for each test.
func marks(verdicts []events.Verdict) string {
	letters := map[events.Verdict]byte{
		events.VerdictPass: '.', events.VerdictFail: 'F', events.VerdictRaised: 'R', events.VerdictTimeout: 'T', events.VerdictNotRun: '-',
	}
	row := make([]byte, len(verdicts))
	passed := 0
	for i, v := range verdicts {
		row[i] = letters[v]
		if v == events.VerdictPass {
			passed++
		}
	}
	return fmt.Sprintf("%s  %d of %d pass", row, passed, len(verdicts))
}

func indent(text string) string {
	b := &strings.Builder{}
	for line := range strings.Lines(text) {
		fmt.Fprintf(b, "    | %s\n", strings.TrimRight(line, "\n"))
	}
	return b.String()
}
