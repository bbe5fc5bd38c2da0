package events

func (c *CodeSampled) write(w *writer) {
	w.fields(6)
	w.text("posed")
	c.Posed.write(w)
	w.intField("version", c.Version)
	w.text("prompt")
	w.ints(c.Prompt)
	w.text("answers")
	writeRow(w, c.Answers, writeSaid)
	w.text("draws")
	writeRow(w, c.Answers, writeDrawn)
	w.text("odds")
	writeRow(w, c.Answers, writeOdds)
}

func (c *CodeSampled) read(r *reader) {
	left := r.fields()
	r.want(&left, "posed")
	c.Posed.read(r)
	c.Version = r.wantInt(&left, "version")
	r.want(&left, "prompt")
	c.Prompt = r.ints()
	c.Answers = readWanted(r, &left, "answers", leastSaid, readSaid)
	r.want(&left, "draws")
	readRow(r, c.Answers, readDrawn)
	r.want(&left, "odds")
	readRow(r, c.Answers, readOdds)
	r.end(left)
}

func (t *TestsSampled) write(w *writer) {
	w.fields(8)
	w.text("posed")
	t.Posed.write(w)
	w.intField("code_version", t.CodeVersion)
	w.intField("version", t.Version)
	writeWanted(w, "codes", t.Codes, writeText)
	writeWanted(w, "prompts", t.Prompts, func(p *Int32s, w *writer) { w.ints(*p) })
	t.writeColumn(w, "suites", writeSaid)
	t.writeColumn(w, "draws", writeDrawn)
	t.writeColumn(w, "odds", writeOdds)
}

func (t *TestsSampled) writeColumn(w *writer, name string, write func(c *Completion, w *writer)) {
	w.text(name)
	w.list(len(t.Suites))
	for _, row := range t.Suites {
		writeRow(w, row, write)
	}
}

func (t *TestsSampled) read(r *reader) {
	left := r.fields()
	r.want(&left, "posed")
	t.Posed.read(r)
	t.CodeVersion = r.wantInt(&left, "code_version")
	t.Version = r.wantInt(&left, "version")
	t.Codes = readWanted(r, &left, "codes", 1, readText)
	t.Prompts = readWanted(r, &left, "prompts", 2, func(p *Int32s, r *reader) { *p = r.ints() })
	t.Suites = readWanted(r, &left, "suites", 1, func(row *[]Completion, r *reader) { *row = readList(r, leastSaid, readSaid) })
	t.readColumn(r, &left, "draws", readDrawn)
	t.readColumn(r, &left, "odds", readOdds)
	r.end(left)
}

func (t *TestsSampled) readColumn(r *reader, left *int, name string, read func(c *Completion, r *reader)) {
	r.want(left, name)
	if r.list(1) != len(t.Suites) {
		r.fail()
	}
	for _, row := range t.Suites {
		readRow(r, row, read)
	}
}

func writeRow(w *writer, row []Completion, write func(c *Completion, w *writer)) {
	w.list(len(row))
	for i := range row {
		write(&row[i], w)
	}
}

// readRow reads a column of a row whose texts have been read.
func readRow(r *reader, row []Completion, read func(c *Completion, r *reader)) {
	if r.list(1) != len(row) {
		r.fail()
	}
	for i := range row {
		if read(&row[i], r); r.failed {
			return
		}
	}
}

func writeSaid(c *Completion, w *writer) {
	w.fields(2)
	w.textField("text", c.Text)
	w.textField("finish", c.Finish)
}

func writeDrawn(c *Completion, w *writer) {
	w.fields(1)
	w.text("tokens")
	w.ints(c.Tokens)
}

func writeOdds(c *Completion, w *writer) {
	w.fields(1)
	w.text("logprobs")
	w.floats(c.LogProbs)
}

var finishes = []string{FinishStop, FinishLength, FinishGiven}

const leastSaid = 1 + 6 + 8

func readSaid(c *Completion, r *reader) {
	left := r.fields()
	c.Text = r.wantText(&left, "text")
	r.want(&left, "finish")
	c.Finish = oneOf(r, finishes)
	r.end(left)
}

func readDrawn(c *Completion, r *reader) {
	left := r.fields()
	r.want(&left, "tokens")
	c.Tokens = r.ints()
	r.end(left)
}

func readOdds(c *Completion, r *reader) {
	left := r.fields()
	r.want(&left, "logprobs")
	c.LogProbs = r.floats()
	r.end(left)
}
