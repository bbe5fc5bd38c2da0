package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"codea1/events"
	"codea1/gpuworker"
)

// call asks for one completion.
type call struct {
	path       string
	request    request
	limit      int64             // bytes of the answer
	completion events.Completion // after use
}

// question is a request with the function that reads its answer.
type question struct {
	path  string
	body  any
	limit int64 // bytes of the answer
	use   func(text []byte) error
}

func (c *call) question() *question { return &question{c.path, &c.request, c.limit, c.use} }

// request is the body of a request to both paths. Servers ignore the fields that only
// others have, or refuse them by name; these are sent only when they are needed.
type request struct {
	Model       string    `json:"model"`
	Messages    []message `json:"messages,omitempty"`
	Prompt      string    `json:"prompt,omitempty"`
	MaxTokens   int       `json:"max_tokens"`
	Temperature float64   `json:"temperature"`
	TopP        float64   `json:"top_p"`
	TopK        int       `json:"top_k,omitempty"` // not OpenAI's
	N           int       `json:"n"`
	Seed        int32     `json:"seed"`
	Stop        []string  `json:"stop,omitempty"`
	LogProbs    any       `json:"logprobs,omitempty"`         // true for a chat, or the number of alternatives
	TokenIDs    bool      `json:"return_token_ids,omitempty"` // vLLM's and SGLang's
	// Both are vLLM's and SGLang's, for a last message that is the begin of the answer.
	Continue bool  `json:"continue_final_message,omitempty"`
	NewTurn  *bool `json:"add_generation_prompt,omitempty"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// answer is the body of an answer of both paths.
type answer struct {
	Choices []struct {
		Message struct {
			Content string `json:"content"`
		} `json:"message"`
		Text         string  `json:"text"`
		FinishReason string  `json:"finish_reason"`
		TokenIDs     []int32 `json:"token_ids"`
		LogProbs     struct {
			Content []struct {
				LogProb *float32 `json:"logprob"` // nil: some servers write NaN as null
			} `json:"content"`
			TokenLogProbs []*float32 `json:"token_logprobs"`
		} `json:"logprobs"`
	} `json:"choices"`
}

// Limits of an answer in bytes. A token is less than 100 bytes of text, also escaped,
// and its log-prob with the text and the bytes of the token less than 1,000.
const (
	answerBytes        = 1 << 20
	tokenBytes         = 1 << 7
	tokenLogProbsBytes = 1 << 10
)

// newCall returns the call for one seed. A top-k of 1 is greedy decoding: temperature 0,
// which every server has.
func (s *Sampler) newCall(messages []gpuworker.Message, seed uint64, p gpuworker.SamplingParams) *call {
	o := &s.client.Options
	c := &call{path: "/chat/completions", limit: answerBytes + tokenBytes*int64(p.MaxTokens), request: request{
		Model: o.Model, MaxTokens: p.MaxTokens, Temperature: p.Temperature, TopP: p.TopP, TopK: p.TopK, N: 1, Stop: o.Stop,
		Seed: int32(seed >> 33), // 31 bits, which every server can read
	}}
	if p.TopK == 1 {
		c.request.Temperature, c.request.TopP, c.request.TopK = 0, 1, 0
	}
	if o.Completions {
		c.path = "/completions"
		texts := make([]string, len(messages))
		for i, m := range messages {
			texts[i] = m.Content
		}
		c.request.Prompt = strings.Join(texts, "\n\n")
	} else {
		for _, m := range messages {
			c.request.Messages = append(c.request.Messages, message{m.Role, m.Content})
		}
		if c.request.Continue = messages[len(messages)-1].Role == "assistant"; c.request.Continue {
			c.request.NewTurn = new(bool)
		}
	}
	if o.LogProbs {
		c.limit += tokenLogProbsBytes * int64(p.MaxTokens)
		c.request.TokenIDs, c.request.LogProbs = true, any(true)
		if o.Completions {
			c.request.LogProbs = 1
		}
	}
	return c
}

// use takes the completion from the body of an answer. JSON has no NaN and no infinity,
// and invalid UTF-8 is replaced.
func (c *call) use(text []byte) error {
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		return err
	}
	if len(a.Choices) != 1 {
		return fmt.Errorf("it has %d choices, want 1", len(a.Choices))
	}
	choice := &a.Choices[0]
	out := events.Completion{Text: choice.Message.Content + choice.Text, Finish: events.FinishStop}
	switch choice.FinishReason {
	case "":
		return errors.New("it has no finish_reason")
	case events.FinishLength:
		out.Finish = events.FinishLength
	}
	if len(out.Text) > events.MaxTextBytes {
		return fmt.Errorf("its text has %d bytes, the limit is %d", len(out.Text), events.MaxTextBytes)
	}
	if c.request.LogProbs != nil {
		logProbs := choice.LogProbs.TokenLogProbs
		for _, token := range choice.LogProbs.Content {
			logProbs = append(logProbs, token.LogProb)
		}
		switch {
		case len(choice.TokenIDs) == 0 || len(logProbs) == 0:
			return fmt.Errorf("it has %d token ids and %d log-probs: --server-log-probs needs a server with both, such as vLLM", len(choice.TokenIDs), len(logProbs))
		case len(choice.TokenIDs) != len(logProbs) || len(logProbs) > c.request.MaxTokens:
			return fmt.Errorf("it has %d token ids and %d log-probs for at most %d tokens", len(choice.TokenIDs), len(logProbs), c.request.MaxTokens)
		}
		out.Tokens = choice.TokenIDs
		for i, p := range logProbs {
			if id := out.Tokens[i]; id < 0 || p == nil || *p > positive {
				return fmt.Errorf("its token %d, with the id %d, has no log-prob of at most 0", i, id)
			}
			out.LogProbs = append(out.LogProbs, min(0, *p))
		}
	}
	c.completion = out
	return nil
}

// positive is the largest log-prob that rounding makes of 0.
const positive = 1e-3
