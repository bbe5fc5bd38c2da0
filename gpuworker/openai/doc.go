// Package openai samples from a model on a server with OpenAI's HTTP interface:
// vLLM, SGLang, llama.cpp, `transformers serve`, or a hosted service. Sampler
// implements gpuworker.Sampler.
//
// It owns the requests and answers of /chat/completions and /completions, the
// limits on the answers of a server, the repetition of failed requests, and the
// key. It must not know groups, roles or rewards, and no event except the
// Completion that it returns.
//
// The server is not trusted. It may send anything at any speed, so an answer has a
// limit in bytes and in time, redirects are refused, and an error shows at most a
// short part of an answer, without the key.
//
// The interface has no request that replaces weights, so nothing is trained with
// it.
//
// Start reading at sampler.go; then client.go for a request and its repetition.
package openai
