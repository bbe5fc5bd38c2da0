package gpuworker

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"codea1/events"
	"codea1/events/fenced"
)

// RoundPrompt is the template that asks an instruction-tuned model for the first test of a
// suite that is written in rounds.
//
//go:embed prompts/round_paper.tmpl
var RoundPrompt TestTemplate

// anotherTest asks for each later test.
const anotherTest = "Write another test of the same form. Its call differs from those above and makes the program run other statements and branches."

const (
	assistant   = "assistant"
	pythonBlock = "```python\n"
)

// talk is a suite that is written in rounds: each response has one test, and the model sees
// the tests before it.
type talk struct {
	first []Message // that ask for the first test
	shown []string  // the part of each response that the model sees
	suite events.Completion
}

// add adds the response to a request. With open, later responses continue the suite.
func (t *talk) add(asked *SampleRequest, response *events.Completion, open bool, rounds int) {
	text := response.Text
	if asked.Messages[len(asked.Messages)-1].Role == assistant {
		text = pythonBlock + text
	}
	test, call := fenced.FirstTest(text)
	if len(test) > events.MaxTextBytes/(2*rounds) { // all tests are one text
		test, call = "", ""
	}
	t.suite.Text += pythonBlock + test + call + "```\n"
	t.suite.Tokens = append(t.suite.Tokens, response.Tokens...)
	t.suite.LogProbs = append(t.suite.LogProbs, response.LogProbs...)
	t.suite.Finish = response.Finish
	t.suite.Turns = append(t.suite.Turns, events.Turn{Prompt: asked.Prompt, Text: response.Text, Tokens: len(response.Tokens), Finish: response.Finish})
	shown := response.Text
	switch {
	case open:
		shown = test
	case test != "":
		shown = pythonBlock + test + "```"
	}
	t.shown = append(t.shown, shown)
}

// messages returns the prompt for the next response, without the oldest ones. With open, it
// ends in the begin of the assistant's turn.
func (t *talk) messages(open bool, without int) []Message {
	messages := slices.Clone(t.first)
	if open {
		if begun := strings.Join(t.shown[without:], ""); begun != "" {
			messages = append(messages, Message{Role: assistant, Content: pythonBlock + begun})
		}
		return messages
	}
	for _, shown := range t.shown[without:] {
		messages = append(messages, Message{Role: assistant, Content: shown}, Message{Role: "user", Content: anotherTest})
	}
	return messages
}

// converse takes the responses of one round of a job's suites. It reports whether the job
// has another round, and makes the requests of that. After a crash, the suites of a group begin
// again: they depend on the weights, the first prompts and the seeds only.
func (r *Rollout) converse(ctx context.Context, j *job, version int, completions [][]events.Completion) bool {
	switch {
	case j.talks == nil:
		j.version = version
		for i, row := range completions {
			for range row {
				j.talks = append(j.talks, &talk{first: j.messages[i]})
			}
		}
	case version != j.version:
		j.err = fmt.Errorf("rollout of %s: version %d took the place of %d between two rounds", j.input.Group, version, j.version)
		return false
	}
	open, n := r.config.Prompt.open, 0
	for i, row := range completions {
		for k := range row {
			j.talks[n].add(&j.requests[i], &row[k], open, j.rounds)
			n++
		}
	}
	if len(j.talks[0].suite.Turns) == j.rounds {
		rows := make([][]events.Completion, len(j.messages))
		for n, t := range j.talks {
			rows[n/j.perCount] = append(rows[n/j.perCount], t.suite)
		}
		r.finish(j, version, rows)
		return false
	}
	j.requests = make([]SampleRequest, len(j.talks))
	for n, t := range j.talks {
		request, err := r.nextRequest(ctx, t)
		if err != nil {
			j.err = r.groupError(j, err)
			return false
		}
		request.Seeds = []uint64{SampleSeed(j.plan, j.input.Group, r.config.Role, n/j.perCount, n%j.perCount+len(t.shown)*j.perCount)}
		j.requests[n] = request
	}
	return true
}

// nextRequest asks for the next response of a suite. It leaves out the oldest responses
// that a prompt of the limit has no place for; the first prompt has fitted.
func (r *Rollout) nextRequest(ctx context.Context, t *talk) (SampleRequest, error) {
	for without := 0; ; without++ {
		messages := t.messages(r.config.Prompt.open, without)
		prompt, err := r.config.Policy.EncodePrompt(ctx, messages)
		if err != nil || len(prompt) <= r.config.MaxPromptTokens || without == len(t.shown) {
			return SampleRequest{Prompt: prompt, Messages: messages}, err
		}
	}
}
