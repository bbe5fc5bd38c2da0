// Package openaitest serves an engine with OpenAI's HTTP interface, for tests: the
// fields of vLLM for chat prompts, text prompts, token ids and log-probs.
//
// It must not know how a client uses the answers. Start reading at Server.
package openaitest

import (
	"encoding/json"
	"errors"
	"net/http"
	"sync/atomic"

	"codea1/gpuworker"
)

// Server answers requests for completions with those of an engine.
type Server struct {
	Sampler gpuworker.Sampler
	Model   string
	Key     string // that every request must have; empty: none
	// Fault answers the n-th request, from 1, in place of the engine if it returns
	// true. nil: it answers none.
	Fault func(n int64, w http.ResponseWriter, r *http.Request) bool

	requests atomic.Int64
}

// Requests returns the number of requests so far.
func (s *Server) Requests() int64 { return s.requests.Load() }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if n := s.requests.Add(1); s.Fault != nil && s.Fault(n, w, r) {
		return
	}
	var request struct {
		Model       string
		Messages    []gpuworker.Message
		Prompt      *string
		MaxTokens   int     `json:"max_tokens"`
		Temperature float64 `json:"temperature"`
		TopP        float64 `json:"top_p"`
		TopK        int     `json:"top_k"`
		Seed        uint64
		TokenIDs    bool `json:"return_token_ids"`
	}
	chat := r.URL.Path == "/v1/chat/completions"
	switch err := json.NewDecoder(r.Body).Decode(&request); {
	case s.Key != "" && r.Header.Get("Authorization") != "Bearer "+s.Key:
		refuse(w, http.StatusUnauthorized, "the API key is wrong: "+r.Header.Get("Authorization"))
		return
	case err != nil:
		refuse(w, http.StatusBadRequest, err.Error())
		return
	case !chat && r.URL.Path != "/v1/completions" || request.Model != s.Model:
		refuse(w, http.StatusNotFound, "the model "+request.Model+" does not exist")
		return
	}
	if !chat {
		request.Messages = []gpuworker.Message{{Role: "user", Content: *request.Prompt}}
	}
	params := gpuworker.SamplingParams{Temperature: request.Temperature, TopP: request.TopP, TopK: request.TopK, MaxTokens: request.MaxTokens}
	if params.Temperature == 0 {
		params.Temperature, params.TopP, params.TopK = 1, 1, 1
	}
	prompt, err := s.Sampler.EncodePrompt(request.Messages)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	sampled, err := s.Sampler.Sample(r.Context(), []gpuworker.SampleRequest{{Prompt: prompt, Seeds: []uint64{request.Seed}}}, params)
	switch {
	case errors.Is(err, gpuworker.ErrPromptTooLong):
		refuse(w, http.StatusBadRequest, "This model's maximum context length is exceeded")
		return
	case err != nil:
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	c := sampled[0][0]
	choice := map[string]any{"index": 0, "finish_reason": c.Finish}
	if chat {
		content := make([]map[string]any, len(c.Tokens))
		for i := range c.Tokens {
			content[i] = map[string]any{"token": "?", "logprob": c.LogProbs[i]}
		}
		choice["message"], choice["logprobs"] = map[string]any{"role": "assistant", "content": c.Text}, map[string]any{"content": content}
	} else {
		choice["text"], choice["logprobs"] = c.Text, map[string]any{"token_logprobs": c.LogProbs}
	}
	if request.TokenIDs {
		choice["token_ids"] = c.Tokens
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "chat.completion", "choices": []any{choice}}) // a client may end first
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, code int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": why, "code": code}})
}
