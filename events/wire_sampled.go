package events

func (c *CodeSampled) write(w *writer) {
	w.fields(6)
	w.text("posed")
	c.Posed.write(w)
	w.intField("version", c.Version)
	w.text("prompt")
	w.ints(c.Prompt)
	w.text("answers")
	writeRow(w, c.Answers, writeResponse)
	w.text("response_tokens")
	writeRow(w, c.Answers, writeTokens)
	w.text("response_logprobs")
	writeRow(w, c.Answers, writeLogProbs)
}

func (c *CodeSampled) read(r *reader) {
	left := r.fields()
	r.want(&left, "posed")
	c.Posed.read(r)
	c.Version = r.wantInt(&left, "version")
	r.want(&left, "prompt")
	c.Prompt = r.ints()
	c.Answers = readWanted(r, &left, "answers", leastResponse, readResponse)
	r.want(&left, "response_tokens")
	readRow(r, c.Answers, readTokens)
	r.want(&left, "response_logprobs")
	readRow(r, c.Answers, readLogProbs)
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
	t.writeColumn(w, "suites", writeResponse)
	t.writeColumn(w, "response_tokens", writeTokens)
	t.writeColumn(w, "response_logprobs", writeLogProbs)
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
	t.Suites = readWanted(r, &left, "suites", 1, func(row *[]Completion, r *reader) { *row = readList(r, leastResponse, readResponse) })
	t.readColumn(r, &left, "response_tokens", readTokens)
	t.readColumn(r, &left, "response_logprobs", readLogProbs)
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

func writeResponse(c *Completion, w *writer) {
	w.fields(2)
	w.textField("text", c.Text)
	w.textField("finish", c.Finish)
}

func writeTokens(c *Completion, w *writer) {
	w.fields(1)
	w.text("tokens")
	w.ints(c.Tokens)
}

func writeLogProbs(c *Completion, w *writer) {
	w.fields(1)
	w.text("logprobs")
	w.floats(c.LogProbs)
}

var finishes = []string{FinishStop, FinishLength, FinishGiven}

const leastResponse = 1 + 6 + 8

func readResponse(c *Completion, r *reader) {
	left := r.fields()
	c.Text = r.wantText(&left, "text")
	r.want(&left, "finish")
	c.Finish = oneOf(r, finishes)
	r.end(left)
}

func readTokens(c *Completion, r *reader) {
	left := r.fields()
	r.want(&left, "tokens")
	c.Tokens = r.ints()
	r.end(left)
}

func readLogProbs(c *Completion, r *reader) {
	left := r.fields()
	r.want(&left, "logprobs")
	c.LogProbs = r.floats()
	r.end(left)
}
