package events

var purposes = []Purpose{PurposeTrain, PurposeEval}

func (p *Plan) write(w *writer) {
	w.fields(14, p.Tag != "")
	w.textField("purpose", string(p.Purpose))
	w.optionalText("tag", p.Tag)
	w.intField("step", p.Step)
	w.intField("epoch", p.Epoch)
	w.intField("slot", p.Slot)
	w.intField("groups", p.Groups)
	w.intField("code_version", p.CodeVersion)
	w.intField("test_version", p.TestVersion)
	w.intField("m", p.Answers)
	w.intField("n", p.Suites)
	w.intField("k", p.Tests)
	w.floatField("temp", p.Temperature)
	w.intField("code_tokens", p.CodeTokens)
	w.intField("test_tokens", p.TestTokens)
	w.uintField("seed", p.Seed)
}

func (p *Plan) read(r *reader) {
	left := r.fields()
	r.want(&left, "purpose")
	p.Purpose = oneOf(r, purposes)
	p.Tag = r.optionalText(&left, "tag")
	p.Step = r.wantInt(&left, "step")
	p.Epoch = r.wantInt(&left, "epoch")
	p.Slot = r.wantInt(&left, "slot")
	p.Groups = r.wantInt(&left, "groups")
	p.CodeVersion = r.wantInt(&left, "code_version")
	p.TestVersion = r.wantInt(&left, "test_version")
	p.Answers = r.wantInt(&left, "m")
	p.Suites = r.wantInt(&left, "n")
	p.Tests = r.wantInt(&left, "k")
	p.Temperature = r.wantFloat(&left, "temp")
	p.CodeTokens = r.wantInt(&left, "code_tokens")
	p.TestTokens = r.wantInt(&left, "test_tokens")
	r.want(&left, "seed")
	p.Seed = r.uint()
	r.end(left)
}

func (p *Problem) write(w *writer) {
	w.fields(4, len(p.Golden) > 0)
	w.textField("id", p.ID)
	w.textField("question", p.Question)
	w.textField("entry", p.EntryPoint)
	w.textField("solution", p.Solution)
	writeOptional(w, "golden", p.Golden, writeText)
}

func (p *Problem) read(r *reader) {
	left := r.fields()
	p.ID = r.wantText(&left, "id")
	p.Question = r.wantText(&left, "question")
	p.EntryPoint = r.wantText(&left, "entry")
	p.Solution = r.wantText(&left, "solution")
	p.Golden = readOptional(r, &left, "golden", 1, readText)
	r.end(left)
}

func (h *HistoricalTest) write(w *writer) {
	w.fields(3)
	w.textField("call", h.Call)
	w.textField("expect", h.Expected)
	w.intField("count", h.Count)
}

const leastHistorical = 1 + 6 + 8 + 7

func (h *HistoricalTest) read(r *reader) {
	left := r.fields()
	h.Call = r.wantText(&left, "call")
	h.Expected = r.wantText(&left, "expect")
	h.Count = r.wantInt(&left, "count")
	r.end(left)
}

func (p *ProblemPosed) write(w *writer) {
	w.fields(2, len(p.Historical) > 0, len(p.Given) > 0)
	w.text("plan")
	p.Plan.write(w)
	w.text("problem")
	p.Problem.write(w)
	writeOptional(w, "hist", p.Historical, (*HistoricalTest).write)
	writeOptional(w, "given", p.Given, writeText)
}

func (p *ProblemPosed) read(r *reader) {
	left := r.fields()
	r.want(&left, "plan")
	p.Plan.read(r)
	r.want(&left, "problem")
	p.Problem.read(r)
	p.Historical = readOptional(r, &left, "hist", leastHistorical, (*HistoricalTest).read)
	p.Given = readOptional(r, &left, "given", 1, readText)
	r.end(left)
}
