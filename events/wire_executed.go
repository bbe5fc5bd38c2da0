package events

func (s *ExecutedSuite) write(w *writer) {
	w.fields(2, len(s.Tests) > 0, s.Failure != "")
	writeOptional(w, "tests", s.Tests, (*ExecutedTest).write)
	w.intField("chars", s.Chars)
	w.intField("unprintable", s.Unprintable)
	w.optionalText("failure", s.Failure)
}

const leastSuite = 1 + 7 + 13

func (s *ExecutedSuite) read(r *reader) {
	left := r.fields()
	s.Tests = readOptional(r, &left, "tests", leastTest, (*ExecutedTest).read)
	s.Chars = r.wantInt(&left, "chars")
	s.Unprintable = r.wantInt(&left, "unprintable")
	s.Failure = r.optionalText(&left, "failure")
	r.end(left)
}

func (g *GoldenVerdict) write(w *writer) {
	w.fields(1, g.InProcess, g.Detail != "")
	w.textField("verdict", string(g.Verdict))
	w.optionalBool("in_process", g.InProcess)
	w.optionalText("detail", g.Detail)
}

const leastGolden = 1 + 9

func (g *GoldenVerdict) read(r *reader) {
	left := r.fields()
	r.want(&left, "verdict")
	g.Verdict = oneOf(r, verdicts)
	g.InProcess = r.optionalBool(&left, "in_process")
	g.Detail = r.optionalText(&left, "detail")
	r.end(left)
}

func (a *ExecutedAnswer) write(w *writer) {
	w.fields(1, a.LoadError != "", len(a.Suites) > 0, len(a.Historical) > 0, len(a.Golden) > 0, a.Failure != "")
	w.boolField("loads", a.Loads)
	w.optionalText("load_error", a.LoadError)
	writeOptional(w, "suites", a.Suites, (*ExecutedSuite).write)
	writeOptional(w, "hist", a.Historical, func(v *Verdict, w *writer) { w.text(string(*v)) })
	writeOptional(w, "golden", a.Golden, (*GoldenVerdict).write)
	w.optionalText("failure", a.Failure)
}

const leastAnswer = 1 + 7

func (a *ExecutedAnswer) read(r *reader) {
	left := r.fields()
	a.Loads = r.wantBool(&left, "loads")
	a.LoadError = r.optionalText(&left, "load_error")
	a.Suites = readOptional(r, &left, "suites", leastSuite, (*ExecutedSuite).read)
	a.Historical = readOptional(r, &left, "hist", 1, func(v *Verdict, r *reader) { *v = oneOf(r, verdicts) })
	a.Golden = readOptional(r, &left, "golden", leastGolden, (*GoldenVerdict).read)
	a.Failure = r.optionalText(&left, "failure")
	r.end(left)
}

func (c *CodeExecuted) write(w *writer) {
	w.fields(5, c.Given, len(c.Historical) > 0)
	w.text("plan")
	c.Plan.write(w)
	w.textField("problem", c.ProblemID)
	w.intField("code_version", c.CodeVersion)
	w.intField("test_version", c.TestVersion)
	w.optionalBool("given", c.Given)
	writeOptional(w, "hist", c.Historical, (*HistoricalTest).write)
	writeWanted(w, "answers", c.Answers, (*ExecutedAnswer).write)
}

func (c *CodeExecuted) read(r *reader) {
	left := r.fields()
	r.want(&left, "plan")
	c.Plan.read(r)
	c.ProblemID = r.wantText(&left, "problem")
	c.CodeVersion = r.wantInt(&left, "code_version")
	c.TestVersion = r.wantInt(&left, "test_version")
	c.Given = r.optionalBool(&left, "given")
	c.Historical = readOptional(r, &left, "hist", leastHistorical, (*HistoricalTest).read)
	c.Answers = readWanted(r, &left, "answers", leastAnswer, (*ExecutedAnswer).read)
	r.end(left)
}
