package events

func (a *AnswerReward) write(w *writer) {
	w.fields(3, a.Masked)
	w.floatField("reward", a.Reward)
	w.floatField("advantage", a.Advantage)
	w.boolField("loads", a.Loads)
	w.optionalBool("masked", a.Masked)
}

const leastAnswerReward = 1 + 16 + 19 + 7

func (a *AnswerReward) read(r *reader) {
	left := r.fields()
	a.Reward = r.wantFloat(&left, "reward")
	a.Advantage = r.wantFloat(&left, "advantage")
	a.Loads = r.wantBool(&left, "loads")
	a.Masked = r.optionalBool(&left, "masked")
	r.end(left)
}

func (s *SuiteReward) write(w *writer) {
	w.fields(11, s.Penalty != 0, s.Masked)
	w.floatField("reward", s.Reward)
	w.floatField("advantage", s.Advantage)
	w.floatField("r_val", s.RVal)
	w.floatField("r_adv", s.RAdv)
	if s.Penalty != 0 {
		w.floatField("penalty", s.Penalty)
	}
	w.floatField("pass", s.Pass)
	w.floatField("pass_new", s.PassNew)
	w.floatField("fail_new", s.FailNew)
	w.floatField("pass_hist", s.PassHist)
	w.floatField("fail_hist", s.FailHist)
	w.intField("valid", s.Valid)
	w.intField("invalid", s.Invalid)
	w.optionalBool("masked", s.Masked)
}

const leastSuiteReward = 1 + 16 + 19 + 2*15 + 14 + 2*18 + 2*19 + 7 + 9

func (s *SuiteReward) read(r *reader) {
	left := r.fields()
	s.Reward = r.wantFloat(&left, "reward")
	s.Advantage = r.wantFloat(&left, "advantage")
	s.RVal = r.wantFloat(&left, "r_val")
	s.RAdv = r.wantFloat(&left, "r_adv")
	if r.has(&left, "penalty") {
		s.Penalty = r.float()
	}
	s.Pass = r.wantFloat(&left, "pass")
	s.PassNew = r.wantFloat(&left, "pass_new")
	s.FailNew = r.wantFloat(&left, "fail_new")
	s.PassHist = r.wantFloat(&left, "pass_hist")
	s.FailHist = r.wantFloat(&left, "fail_hist")
	s.Valid = r.wantInt(&left, "valid")
	s.Invalid = r.wantInt(&left, "invalid")
	s.Masked = r.optionalBool(&left, "masked")
	r.end(left)
}

func (d *BookDelta) write(w *writer) {
	w.fields(3)
	w.textField("call", d.Call)
	w.textField("expect", d.Expected)
	w.intField("change", d.Change)
}

const leastDelta = 1 + 6 + 8 + 8

func (d *BookDelta) read(r *reader) {
	left := r.fields()
	d.Call = r.wantText(&left, "call")
	d.Expected = r.wantText(&left, "expect")
	d.Change = r.wantInt(&left, "change")
	r.end(left)
}

func (g *GroupRewarded) write(w *writer) {
	w.fields(9, len(g.Deltas) > 0)
	w.text("plan")
	g.Plan.write(w)
	w.textField("problem", g.ProblemID)
	w.intField("code_version", g.CodeVersion)
	w.intField("test_version", g.TestVersion)
	w.textField("recipe", g.Recipe)
	w.floatField("alpha", g.Alpha)
	writeWanted(w, "code", g.Code, (*AnswerReward).write)
	writeWanted(w, "test", g.Test, func(row *[]SuiteReward, w *writer) { writeList(w, *row, (*SuiteReward).write) })
	w.intField("top_var", g.TopVar)
	writeOptional(w, "deltas", g.Deltas, (*BookDelta).write)
}

func (g *GroupRewarded) read(r *reader) {
	left := r.fields()
	r.want(&left, "plan")
	g.Plan.read(r)
	g.ProblemID = r.wantText(&left, "problem")
	g.CodeVersion = r.wantInt(&left, "code_version")
	g.TestVersion = r.wantInt(&left, "test_version")
	g.Recipe = r.wantText(&left, "recipe")
	g.Alpha = r.wantFloat(&left, "alpha")
	g.Code = readWanted(r, &left, "code", leastAnswerReward, (*AnswerReward).read)
	g.Test = readWanted(r, &left, "test", 1, func(row *[]SuiteReward, r *reader) { *row = readList(r, leastSuiteReward, (*SuiteReward).read) })
	g.TopVar = r.wantInt(&left, "top_var")
	g.Deltas = readOptional(r, &left, "deltas", leastDelta, (*BookDelta).read)
	r.end(left)
}
