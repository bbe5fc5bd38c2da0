package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"codea1/gpuworker"
)

// Model returns the name of the model on the server.
func (s *Sampler) Model() string { return s.client.Model }

// scoreRequest is the body of a request to /classify, as vLLM has it. Its versions name
// the activation differently, and ignore the other name.
type scoreRequest struct {
	Model         string    `json:"model"`
	Messages      []message `json:"messages"`
	Prompt        bool      `json:"add_generation_prompt"`
	Activation    bool      `json:"activation"`
	UseActivation bool      `json:"use_activation"`
}

// maxScore bounds a score. Outputs of a classifier are below 100. Sums and squares of much
// larger numbers are not finite.
const maxScore = 1e6

// Score returns the score of a chat by a reward model: the one output of a sequence
// classifier, without an activation.
func (s *Sampler) Score(ctx context.Context, messages []gpuworker.Message) (score float64, err error) {
	request := scoreRequest{Model: s.client.Model}
	for _, m := range messages {
		request.Messages = append(request.Messages, message{m.Role, m.Content})
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	err = s.client.ask(ctx, &question{path: "/classify", body: &request, limit: answerBytes, use: func(text []byte) error {
		var answer struct {
			Data []struct {
				Probs []*float64 `json:"probs"` // nil: some servers write NaN as null
			} `json:"data"`
		}
		if err := json.Unmarshal(text, &answer); err != nil {
			return err
		}
		if len(answer.Data) != 1 || len(answer.Data[0].Probs) != 1 || answer.Data[0].Probs[0] == nil {
			return fmt.Errorf("want one number in data[0].probs: the model must be a sequence classifier with one label")
		}
		if score = *answer.Data[0].Probs[0]; math.Abs(score) > maxScore {
			return fmt.Errorf("the score %v is not between -%g and %g", score, maxScore, maxScore)
		}
		return nil
	}})
	return score, err
}
